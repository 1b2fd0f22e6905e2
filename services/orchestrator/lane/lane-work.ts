/** What one instance has out on the lane, and the inbox message that stands for it (LANE-1). */
import { type EventId, poolQueue } from "../../../schemas/index.ts";
import type { Delivery, Subjects } from "../../../shared/bus/index.ts";
import type { Effect, InstanceState, OpenTask } from "../../../shared/replay/index.ts";
import type { Runtime } from "../../../shared/runtime/index.ts";
import type { Lane, Taken } from "./lane.ts";
import { laneTaskName, type OutTask, type RecallWhy } from "./out-task.ts";

interface Out {
  readonly execution: number;
  readonly attempt: number;
  /** Of a call: it lives and dies with this epoch, so nobody has to look after it. */
  readonly epoch: number | undefined;
  readonly subject: string;
  readonly workerId: string;
  readonly since: number;
  /** Nobody has it any more; it counts as out until it is in the queue, so that its anchor is kept. */
  recalled: boolean;
}

/** Of how many instances of a partition work may be out: each keeps one message of its feed unsettled. */
export interface LaneSeats {
  free: number;
  /**
   * An owner that wakes up late may have a successor that sent the work: by the queue the repetition is known by its
   * message id, by the lane it would be run again.
   */
  isHeld(): boolean;
}

export interface LaneWorkInit {
  instanceId: string;
  names: Subjects;
  runtime: Runtime;
  lane: Lane;
  seats: LaneSeats;
  /** It was over before its owner could turn to anything else. */
  onReport(done: Extract<Taken, { kind: "done" }>): void;
  /** A task is nobody's: the instance must send it by the queue, between turns. */
  onRecalled(of: number): void;
}

/** Wider fan-outs go by the queue, which spreads them better than chance. */
const widest = 64;

export class LaneWork {
  readonly #init: LaneWorkInit;
  readonly #out = new Map<number, Out>();
  readonly #planned = new Map<number, string>();
  /** The commit asks for local activities, and the anchor stands for them. */
  #localPlanned = false;
  /** Perhaps begun on the lane, in this turn or under the owner before, and to go by the queue. */
  readonly #lost = new Set<number>();
  /** A seat is taken while there is an anchor, or may be one after this turn. */
  #seated = false;
  #anchor: Delivery | undefined;
  /** Could become the anchor: applied in this turn, not acknowledged yet. */
  #candidate: Delivery | undefined;

  constructor(init: LaneWorkInit) {
    this.#init = init;
  }

  /** An inbox message kept from an earlier turn. */
  get anchor(): Delivery | undefined {
    return this.#anchor;
  }

  /** Whether a message would stand for work that is out when this turn is over. */
  get hasAnchor(): boolean {
    return (this.#anchor ?? this.#candidate) !== undefined;
  }

  /** The message that stands for a commit: the anchor, or what becomes the anchor of what it plans. */
  get standsFor(): Delivery | undefined {
    return this.#anchor ?? (this.#planned.size > 0 || this.#localPlanned ? this.#candidate : undefined);
  }

  /** The same message delivered again: the newest is the one to settle. */
  redelivered(delivery: Delivery): void {
    if (this.#anchor?.seq === delivery.seq) this.#anchor = delivery;
  }

  /** A turn is tried, perhaps not for the first time: what a fenced one meant to send means nothing. */
  begin(): void {
    this.#planned.clear();
    this.#localPlanned = false;
    this.#candidate = undefined;
    this.#seat(this.#anchor !== undefined);
  }

  #seat(taken: boolean): void {
    if (taken === this.#seated) return;
    this.#seated = taken;
    this.#init.seats.free += taken ? -1 : 1;
  }

  /**
   * This message is in the history, and will come again if this process dies. The start rather than a signal that came
   * before it: whoever asks for the instance while its first summary waits finds it there, by its name.
   */
  applied(delivery: Delivery, isStart = false): void {
    if (isStart || !this.#candidate) this.#candidate = delivery;
  }

  /** Chooses, before the commit, what of it goes by the lane. Returns all tasks that will be out then. */
  plan(state: Readonly<InstanceState>, effects: readonly Effect[], now: number): EventId[] {
    this.#planned.clear();
    this.#localPlanned = false;
    const tasks: EventId[] = [];
    for (const [of, { epoch }] of this.#out) {
      const task = epoch === undefined ? state.tasks.get(of) : undefined;
      if (task && this.#holds(state, task)) tasks.push(of as EventId);
    }
    if (!this.#anchor && (!this.#candidate || (!this.#seated && this.#init.seats.free <= 0))) return tasks;
    for (const effect of effects) {
      if (effect.kind === "local") this.#localPlanned = true;
      if (effect.kind !== "task" && effect.kind !== "call") continue;
      if (this.#out.size + this.#planned.size >= widest) break;
      const { task } = effect;
      if (state.tasks.get(task.id) !== task || task.readyAt > now) continue;
      const subject = effect.kind === "task" ? this.#taskLane(task) : this.#callLane(state, task, effect.on);
      if (subject === undefined || !this.#init.lane.isOpen(subject)) continue;
      this.#planned.set(task.id, subject);
      if (effect.kind === "task") tasks.push(task.id as EventId);
    }
    if (this.#planned.size > 0 || this.#localPlanned) this.#seat(true);
    return tasks;
  }

  /** First attempts without heartbeats: what has a past goes by the queue, which counts and remembers. */
  #taskLane({ attempt, target, timeouts, name }: OpenTask): string | undefined {
    if (target.kind !== "queue" || attempt > 1 || timeouts.heartbeatMs !== undefined) return undefined;
    if (target.queue.startsWith(poolQueue(""))) return undefined; // the members of a pool share its queue
    return this.#init.names.laneOfActivity(target.queue, name);
  }

  /** Calls of a session run in order: one by the lane must not overtake one that went by the queue. */
  #callLane(
    state: Readonly<InstanceState>,
    task: OpenTask,
    on: { workerId: string; epoch: number },
  ): string | undefined {
    if (task.target.kind !== "session" || task.sentEpoch !== on.epoch) return undefined;
    const { sessionId } = task.target;
    for (const other of state.tasks.values()) {
      if (other.id >= task.id) break;
      const { target } = other;
      if (target.kind !== "session" || target.sessionId !== sessionId || other.sentEpoch === undefined)
        continue;
      if (!this.#planned.has(other.id) && !this.isOut(state, other)) return undefined;
    }
    return this.#init.names.laneOfSession(on.workerId, sessionId);
  }

  isOut(state: Readonly<InstanceState>, task: OpenTask): boolean {
    return this.#holds(state, task) && !this.#out.get(task.id)?.recalled;
  }

  /** Out, or recalled and not yet in the queue. */
  #holds({ execution }: Readonly<InstanceState>, { id, attempt, sentEpoch }: OpenTask): boolean {
    const out = this.#out.get(id);
    return out?.execution === execution && out.attempt === attempt && out.epoch === sentEpoch;
  }

  /** It may have been begun: whoever runs it now goes on where that ended. */
  wasLost({ id }: OpenTask): boolean {
    return this.#lost.has(id) || this.#out.get(id)?.recalled === true;
  }

  /** These are in the queue now. */
  resent(ids: readonly number[]): void {
    for (const id of ids) if (this.#out.get(id)?.recalled) this.#out.delete(id);
  }

  /** The partition's lease is held: exact also right after the process was paused. */
  get isHeld(): boolean {
    return this.#init.seats.isHeld();
  }

  isPlanned({ id }: OpenTask): boolean {
    return this.#planned.has(id);
  }

  /** Offers what was planned, in one message. True when a worker has it, false where it must go by the queue. */
  async send(
    { execution }: Readonly<InstanceState>,
    tasks: readonly OpenTask[],
    body: Uint8Array,
  ): Promise<boolean> {
    const subject = this.#planned.get(tasks[0]?.id ?? 0);
    if (subject === undefined || !this.isHeld) return false;
    const answer = await this.#init.lane.offer(subject, body);
    const taken = typeof answer === "string" ? undefined : answer;
    for (const { id, attempt, sentEpoch: epoch } of tasks) {
      this.#planned.delete(id);
      if (taken) this.#add(id, { execution, attempt, epoch, subject, workerId: taken.workerId });
      else if (answer === "unsure") this.#lost.add(id);
    }
    if (taken?.kind === "done") this.#init.onReport(taken);
    return taken !== undefined;
  }

  /** A task an owner before us sent by the lane. False where no live worker has it. */
  async adopt(
    { execution }: Readonly<InstanceState>,
    { id, attempt, name, target }: OpenTask,
  ): Promise<boolean> {
    const { instanceId, lane, names, runtime } = this.#init;
    if (target.kind !== "queue") return false;
    const workerId = await lane.seek(laneTaskName({ instanceId, execution, of: id, attempt }));
    if (workerId === undefined) {
      this.#lost.add(id);
      return false;
    }
    const subject = names.laneOfActivity(target.queue, name);
    this.#add(id, { execution, attempt, epoch: undefined, subject, workerId });
    runtime.announce({ kind: "lane.adopted", instanceId, of: id, workerId });
    return true;
  }

  /** No longer on the lane. False where it was not. */
  recall(
    { execution, of, attempt }: { execution: number; of: number; attempt: number },
    why: RecallWhy,
  ): boolean {
    const out = this.#out.get(of);
    if (!out || out.recalled || out.epoch !== undefined) return false;
    if (out.execution !== execution || out.attempt !== attempt) return false;
    out.recalled = true;
    const { instanceId, runtime } = this.#init;
    runtime.announce({ kind: "lane.recalled", instanceId, of, workerId: out.workerId, why });
    this.#init.onRecalled(of);
    return true;
  }

  /** What is with a worker since before then. */
  *since(before: number): Iterable<OutTask> {
    const { instanceId } = this.#init;
    for (const [of, { execution, attempt, epoch, subject, workerId, since, recalled }] of this.#out) {
      if (recalled || since > before) continue;
      const name = laneTaskName({ instanceId, execution, of, attempt });
      const recall = (why: RecallWhy) => void this.recall({ execution, of, attempt }, why);
      yield { name, subject, workerId, leased: epoch !== undefined, recall };
    }
  }

  /** The message that stays unacknowledged if the turn is over now. What is answered is no longer out. */
  keeps(state: Readonly<InstanceState>): Delivery | undefined {
    for (const of of this.#out.keys()) {
      const task = state.tasks.get(of);
      if (!task || !this.#holds(state, task)) this.#out.delete(of);
    }
    if (this.#out.size > 0) return this.#anchor ?? this.#candidate;
    if (!runsLocally(state, this.#init.runtime.clock.now())) return undefined;
    return this.#anchor ?? (this.#seated || this.#init.seats.free > 0 ? this.#candidate : undefined);
  }

  /**
   * The turn is over; the anchor is kept while anything is out. Returns the message that stays unacknowledged, and the
   * one that was kept until now and need not be any more.
   */
  settle(state: Readonly<InstanceState>): { kept: Delivery | undefined; released: Delivery | undefined } {
    const { lane } = this.#init;
    const before = this.#anchor;
    this.#anchor = this.keeps(state);
    this.#candidate = undefined;
    this.#planned.clear();
    this.#localPlanned = false;
    this.#lost.clear();
    this.#seat(this.#anchor !== undefined);
    if (!before && this.#anchor) lane.watch(this);
    if (before && !this.#anchor) lane.unwatch(this);
    return { kept: this.#anchor, released: this.#anchor ? undefined : before };
  }

  /** The partition is somebody else's now, who gets the anchor again. */
  letGo(): void {
    if (this.#anchor) this.#init.lane.unwatch(this);
    this.#anchor = undefined;
    this.#seat(false);
    this.#out.clear();
  }

  #add(of: number, { execution, attempt, epoch, subject, workerId }: Omit<Out, "since" | "recalled">): void {
    const since = this.#init.runtime.clock.monotonic();
    this.#out.set(of, { execution, attempt, epoch, subject, workerId, since, recalled: false });
  }
}

/** Somebody must look after these if this process dies; one that waits for its next attempt has a schedule. */
function runsLocally({ tasks }: Readonly<InstanceState>, now: number): boolean {
  if (tasks.size === 0) return false;
  for (const { target, attempt, readyAt } of tasks.values())
    if (target.kind === "local" && (attempt === 1 || readyAt <= now)) return true;
  return false;
}
