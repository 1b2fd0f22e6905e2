/** The tasks that one instance has out on the lane, and the inbox message that stands for them (LANE-1). */
import { type EventId, poolQueue } from "../../../schemas/index.ts";
import type { Delivery, Subjects } from "../../../shared/bus/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import type { Effect, InstanceState, OpenTask } from "../../../shared/replay/index.ts";
import type { Runtime } from "../../../shared/runtime/index.ts";
import type { Lane } from "./lane.ts";
import { type Activated, LaneClaims } from "./lane-claims.ts";
import type { Answered, SessionHolder, Taken } from "./offers.ts";
import { laneTaskName, type OutTask, type RecallWhy } from "./out-task.ts";

interface Out {
  readonly execution: number;
  readonly attempt: number;
  /** Epoch of a session call: the call ends with this epoch, so no orchestrator has to look after it. */
  readonly epoch: number | undefined;
  readonly subject: string;
  readonly workerId: string;
  readonly since: number;
  /**
   * True if no worker holds the task any more; it counts as out until it is in the queue, so that its anchor
   * is kept.
   */
  recalled: boolean;
}

/**
 * How many more instances of a partition may have work on the lane: each keeps one message of the feed
 * unsettled.
 */
export interface LaneSeats {
  free: number;
  /**
   * True while this orchestrator owns the partition. An owner that wakes up late may have a successor that
   * sent the same work: the queue recognises the repetition by its message id, the lane would run it again.
   */
  isHeld(): boolean;
}

interface LaneWorkInit {
  instanceId: string;
  names: Subjects;
  runtime: Runtime;
  lane: Lane;
  generation: Pick<Generation, "allows">;
  seats: LaneSeats;
  /** Called when the worker completed the task within its reply to the offer. */
  onReport(done: Extract<Taken, { kind: "done" }>): void;
  /** Called when a worker took a claim and its state was ready at once. */
  onActivated(activated: Activated): void;
  /** Called when no worker holds the task any more: the instance must send it by the queue, between turns. */
  onRecalled(of: number): void;
}

/**
 * Most tasks of an instance on the lane, because every commit names all that are out; more go by the queue.
 */
const widest = 1_000;
/** The same limit while a worker of 0.1.0 is alive, which takes one task per message. */
const widestSingly = 64;

export class LaneWork {
  readonly #init: LaneWorkInit;
  readonly #out = new Map<number, Out>();
  readonly #planned = new Map<number, string>();
  /** True if the commit asks for local activities, and the anchor stands for them. */
  #localPlanned = false;
  /**
   * Tasks that may have begun on the lane, in this turn or under an earlier owner, and now go by the queue.
   */
  readonly #lost = new Set<number>();
  /** True while a seat is taken: there is an anchor, or may be one after this turn. */
  #seated = false;
  #anchor: Delivery | undefined;
  /** True if another owner made the commit that the anchor stands for. */
  #inherits = false;
  /** The message that could become the anchor: applied in this turn, not acknowledged yet. */
  #candidate: Delivery | undefined;

  /** Undefined for the many instances that open no session. */
  #claims: LaneClaims | undefined;

  constructor(init: LaneWorkInit) {
    this.#init = init;
  }

  /** The inbox message kept unacknowledged since an earlier turn. */
  get anchor(): Delivery | undefined {
    return this.#anchor;
  }

  /** True if a message will stand for work that is out when this turn is over. */
  get hasAnchor(): boolean {
    return (this.#anchor ?? this.#candidate) !== undefined;
  }

  /**
   * The message that stands for a commit: the anchor, or the candidate that becomes the anchor of the planned
   * tasks.
   */
  get standsFor(): Delivery | undefined {
    return this.#anchor ?? (this.#hasPlans ? this.#candidate : undefined);
  }

  get #hasPlans(): boolean {
    return this.#planned.size > 0 || this.#localPlanned || this.#claims?.hasPlans === true;
  }

  #forgetPlans(): void {
    this.#planned.clear();
    this.#localPlanned = false;
    this.#claims?.forgetPlans();
  }

  /**
   * The same message was delivered again: the newest delivery is the one to settle. Returns true if it is kept
   * for another owner's commit, which that owner may have followed by one that no message leads to (T3).
   */
  redelivered(delivery: Delivery): boolean {
    if (this.#anchor?.seq !== delivery.seq) return false;
    this.#anchor = delivery;
    return this.#inherits;
  }

  /** Called at the start of each try of a turn: the plan of an earlier, fenced try is void. */
  begin(): void {
    this.#forgetPlans();
    this.#candidate = undefined;
    this.#seat(this.#anchor !== undefined);
  }

  #seat(taken: boolean): void {
    if (taken === this.#seated) return;
    this.#seated = taken;
    this.#init.seats.free += taken ? -1 : 1;
  }

  /**
   * Called when this message is part of the commit; it is redelivered if this process dies. The start is
   * preferred to a signal that came before it: a client that asks for the instance while its first summary
   * waits finds it in the inbox by its start.
   */
  applied(delivery: Delivery, isStart = false): void {
    if (isStart || !this.#candidate) this.#candidate = delivery;
  }

  /**
   * Chooses, before the commit, which tasks go by the lane. Returns all tasks that will be out after the
   * commit.
   */
  plan(state: Readonly<InstanceState>, effects: readonly Effect[], now: number): EventId[] {
    this.#forgetPlans();
    const tasks: EventId[] = [];
    for (const [of, { epoch }] of this.#out) {
      const task = epoch === undefined ? state.tasks.get(of) : undefined;
      if (task && this.#holds(state, task)) tasks.push(of as EventId);
    }
    if (!this.#anchor && (!this.#candidate || (!this.#seated && this.#init.seats.free <= 0))) return tasks;
    const most = this.#init.generation.allows(2) ? widest : widestSingly;
    for (const effect of effects) {
      if (effect.kind === "local" && state.tasks.get(effect.task.id) === effect.task)
        this.#localPlanned = true;
      if (effect.kind === "claim") this.claims.plan(effect);
      if (effect.kind !== "task" && effect.kind !== "call") continue;
      if (this.#out.size + this.#planned.size >= most) break;
      const { task } = effect;
      if (state.tasks.get(task.id) !== task || task.readyAt > now) continue;
      const subject =
        effect.kind === "task" ? this.#taskLane(state, task) : this.#callLane(state, task, effect.on);
      if (subject === undefined || !this.#init.lane.offers.isOpen(subject)) continue;
      this.#planned.set(task.id, subject);
      if (effect.kind === "task") tasks.push(task.id as EventId);
    }
    if (this.#hasPlans) this.#seat(true);
    return tasks;
  }

  /** Only first attempts without heartbeats go by the lane: the queue counts and remembers all others. */
  #taskLane(
    { sessions }: Readonly<InstanceState>,
    { attempt, target, timeouts, name }: OpenTask,
  ): string | undefined {
    if (target.kind !== "queue" || attempt > 1 || timeouts.heartbeatMs !== undefined) return undefined;
    if (target.queue.startsWith(poolQueue(""))) return undefined; // the members of a pool share its queue
    const { names, lane } = this.#init;
    const session = target.preferWorkerOf && sessions.get(target.preferWorkerOf);
    const preferred =
      session && "on" in session.phase && session.phase.on
        ? names.laneOfWorker(session.phase.on.workerId, target.queue, name)
        : undefined;
    return preferred !== undefined && lane.offers.isOpen(preferred)
      ? preferred
      : names.laneOfActivity(target.queue, name);
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
    const { names, generation } = this.#init;
    if (!generation.allows(2)) return names.laneOfSession(on.workerId, sessionId);
    const type = state.sessions.get(sessionId)?.type;
    return type && names.sessionCalls(type, on.workerId, sessionId);
  }

  isOut(state: Readonly<InstanceState>, task: OpenTask): boolean {
    return this.#holds(state, task) && !this.#out.get(task.id)?.recalled;
  }

  /** True if the task is out, or recalled and not yet in the queue. */
  #holds({ execution }: Readonly<InstanceState>, { id, attempt, sentEpoch }: OpenTask): boolean {
    const out = this.#out.get(id);
    return out?.execution === execution && out.attempt === attempt && out.epoch === sentEpoch;
  }

  /** True if the task may have begun on the lane: the worker that runs it next continues from there. */
  wasLost({ id }: OpenTask): boolean {
    return this.#lost.has(id) || this.#out.get(id)?.recalled === true;
  }

  /** Called when these tasks are in the queue. */
  resent(ids: readonly number[]): void {
    for (const id of ids) if (this.#out.get(id)?.recalled) this.#out.delete(id);
  }

  /** True if this orchestrator holds the partition's lease; exact even right after the process was paused. */
  get isHeld(): boolean {
    return this.#init.seats.isHeld();
  }

  isPlanned({ id }: OpenTask): boolean {
    return this.#planned.has(id);
  }

  get claims(): LaneClaims {
    const { lane, instanceId, onActivated } = this.#init;
    return (this.#claims ??= new LaneClaims(lane, instanceId, onActivated));
  }

  /** Offers a planned task. Returns true if a worker took it, false if it must go by the queue. */
  send(state: Readonly<InstanceState>, task: OpenTask, body: Uint8Array): Promise<boolean> {
    return this.#send(state, [task], (subject) =>
      this.#init.lane.offers.offerTask(subject, body, () => this.isHeld),
    );
  }

  /** Offers planned calls of one session in one message: all of them are taken, or none. */
  sendCalls(
    state: Readonly<InstanceState>,
    tasks: readonly OpenTask[],
    body: Uint8Array,
    holder: SessionHolder,
  ): Promise<boolean> {
    return this.#send(state, tasks, (subject) => this.#init.lane.offers.offer(subject, body, holder));
  }

  async #send(
    { execution }: Readonly<InstanceState>,
    tasks: readonly OpenTask[],
    offer: (subject: string) => Promise<Answered>,
  ): Promise<boolean> {
    const subject = this.#planned.get(tasks[0]?.id ?? 0);
    if (subject === undefined || !this.isHeld) return false;
    const { lane, instanceId } = this.#init;
    const offered = await offer(subject);
    // A worker that cannot show the task's capability did not run it; another worker may be running it.
    const isDone = typeof offered !== "string" && offered.kind === "done";
    const answer = isDone && !lane.believes(instanceId, offered.report) ? "unsure" : offered;
    const taken = typeof answer === "string" ? undefined : answer;
    for (const { id, attempt, sentEpoch: epoch } of tasks) {
      this.#planned.delete(id);
      if (taken) this.#add(id, { execution, attempt, epoch, subject, workerId: taken.workerId });
      else if (answer === "unsure") this.#lost.add(id);
    }
    if (taken?.kind === "done") this.#init.onReport(taken);
    return taken !== undefined;
  }

  /** Takes over a task that an earlier owner sent by the lane. Returns false if no live worker holds it. */
  async adopt(
    { execution }: Readonly<InstanceState>,
    { id, attempt, name, target }: OpenTask,
  ): Promise<boolean> {
    const { instanceId, lane, names, runtime } = this.#init;
    if (target.kind !== "queue") return false;
    const workerId = await lane.seek(
      laneTaskName({ instanceId, execution, of: id, attempt }),
      target.queue,
      name,
    );
    if (workerId === undefined) {
      this.#lost.add(id);
      return false;
    }
    const subject = names.laneOfActivity(target.queue, name);
    this.#add(id, { execution, attempt, epoch: undefined, subject, workerId });
    runtime.announce({ kind: "lane.adopted", instanceId, of: id, workerId });
    return true;
  }

  /** Marks the task as no longer on the lane. Returns false if it was not there. */
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

  /** Tasks that a worker has held since before that time. */
  *since(before: number): Iterable<OutTask> {
    const { instanceId } = this.#init;
    for (const [of, { execution, attempt, epoch, subject, workerId, since, recalled }] of this.#out) {
      if (recalled || since > before) continue;
      const name = laneTaskName({ instanceId, execution, of, attempt });
      const recall = (why: RecallWhy) => void this.recall({ execution, of, attempt }, why);
      yield { name, subject, workerId, leased: epoch !== undefined, recall };
    }
  }

  /**
   * The message that stays unacknowledged if the turn ends now. Tasks with a result are no longer out.
   * `inherited`: the message that stands for the last commit, if another owner made that commit.
   */
  keeps(state: Readonly<InstanceState>, inherited?: number): Delivery | undefined {
    for (const of of this.#out.keys()) {
      const task = state.tasks.get(of);
      if (!task || !this.#holds(state, task)) this.#out.delete(of);
    }
    const mine = this.#anchor ?? this.#candidate;
    if (this.#out.size > 0 || this.#claims?.isWaiting(state)) return mine;
    // That owner may be cut off with an append under way about one of these tasks: the instance's owner at
    // that time must look at it (T3).
    if (mine !== undefined && mine.seq === inherited && state.tasks.size > 0) return mine;
    if (!runsLocally(state, this.#init.runtime.clock.now())) return undefined;
    return this.#anchor ?? (this.#seated || this.#init.seats.free > 0 ? this.#candidate : undefined);
  }

  /**
   * Ends the turn; the anchor is kept while any task is out. Returns the message that stays unacknowledged,
   * and the message that was kept until now and can be acknowledged.
   */
  settle(
    state: Readonly<InstanceState>,
    inherited?: number,
  ): { kept: Delivery | undefined; released: Delivery | undefined } {
    const { lane } = this.#init;
    const before = this.#anchor;
    this.#anchor = this.keeps(state, inherited);
    this.#inherits = this.#anchor !== undefined && this.#anchor.seq === inherited;
    this.#candidate = undefined;
    this.#forgetPlans();
    this.#lost.clear();
    this.#seat(this.#anchor !== undefined);
    if (!before && this.#anchor) lane.watch(this);
    if (before && !this.#anchor) lane.unwatch(this);
    return { kept: this.#anchor, released: this.#anchor ? undefined : before };
  }

  /** Called when another orchestrator owns the partition; the anchor is redelivered to that one. */
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

/**
 * True if a local activity runs that the next owner must look after if this process dies; an activity that
 * waits for its next attempt has a schedule.
 */
function runsLocally({ tasks }: Readonly<InstanceState>, now: number): boolean {
  if (tasks.size === 0) return false;
  for (const { target, attempt, readyAt } of tasks.values())
    if (target.kind === "local" && (attempt === 1 || readyAt <= now)) return true;
  return false;
}
