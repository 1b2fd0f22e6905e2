/**
 * The lane sends work straight to a live worker, and the worker sends its result straight back, as plain
 * messages. A step then costs one durable write, the history's own, instead of three. Nothing rests on a
 * plain message:
 *
 * LANE-1 Work goes by the lane only while its instance keeps an inbox message unacknowledged, its anchor. If
 *    this process dies, the anchor is redelivered, and the orchestrator that receives it finds out what
 *    became of the work.
 * LANE-2 The answer `taken` means that a worker holds the work; a result as the answer means the same. Any
 *    other answer, or none, sends the work by the queue.
 * LANE-3 A result that came by the lane is answered when its turn is over, as an inbox message is
 *    acknowledged (TURN-2). An unanswered result comes again by the inbox, and the first one counts (T5).
 * LANE-4 A worker that is gone, or does not know a task it took, has lost it: the task goes out again by the
 *    queue.
 */
import {
  ActivityReport,
  LaneAnswer,
  LaneHoldings,
  type LaneQuestion,
  type LaneRecordings,
  LaneReturn,
  laneOwnerHeader,
} from "../../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  decode,
  encode,
  type Reply,
  type Stoppable,
  type Subjects,
} from "../../../shared/bus/index.ts";
import { type Capabilities, type Doubt, doubtReport } from "../../../shared/capabilities/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { once, type Runtime, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { DeadWorker } from "../deaths/worker-deaths.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Mail } from "../mail.ts";
import type { OutTask, OutTasks, RecallWhy } from "./out-task.ts";

export interface LaneOptions {
  id: string;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  /** What workers must show with what they say (C1). */
  capabilities: Capabilities;
  /** False: no new tasks are sent by the lane. */
  enabled: boolean;
  workSent?: EngineDeps["workSent"];
}

/** A worker took the task, or has completed it already. */
export type Taken = Extract<LaneAnswer, { kind: "taken" | "done" }>;

/** Receives lane results for an instance of this orchestrator. */
export interface LanePartition {
  put(mail: Mail): void;
  recall(task: { execution: number; of: number; attempt: number }): void;
}

/** An offer that no worker has answered yet. */
interface Offer {
  readonly subject: string;
  readonly since: number;
  giveUp(): void;
}

/** Long, because a worker that is gone is known at once, and one that is there may be busy. */
const offerMs = 2_000;
const seekMs = 2_000;
const askMs = 1_000;
/** Room for subject and headers within the server's payload limit. */
const headroomBytes = 8 * 1024;
const recordedAfterMs = 10;
/** How long the lane avoids a subject after each kind of failed offer. */
const closedMs = { refused: 20, nobody: 1_000, timeout: 2_000, slow: 60_000 };
/**
 * Longer work gains nothing from the lane and holds up its anchor: the next task of its kind goes by the
 * queue.
 */
const slowMs = 1_000;
/**
 * `nobody`: no process listens; the worker is gone or about to reconnect. `timeout`: the worker listens but
 * does not answer; its event loop may be busy.
 */
const patienceMs = { nobody: 5_000, timeout: 30_000 };

const answers = {
  recorded: encode({ v: 1, kind: "recorded" } satisfies LaneAnswer),
  elsewhere: encode({ v: 1, kind: "elsewhere" } satisfies LaneAnswer),
};

export class Lane implements Service {
  readonly #options: LaneOptions;
  readonly #find: (instanceId: string) => LanePartition | undefined;
  readonly #headers: Readonly<Record<string, string>>;
  /** Subject → monotonic time until which the lane avoids it, and how many offers in a row timed out. */
  readonly #closed = new Map<string, { until: number; timeouts: number }>();
  readonly #works = new Set<OutTasks>();
  readonly #offers = new Set<Offer>();
  /** Worker id → since when the worker has not answered. */
  readonly #silent = new Map<string, number>();
  /** Worker id → keys of recorded results that the worker has not been told of yet. */
  readonly #recorded = new Map<string, string[]>();
  #saying: Timer | undefined;
  #subscription: Stoppable | undefined;
  #timer: Timer | undefined;

  constructor(options: LaneOptions, find: (instanceId: string) => LanePartition | undefined) {
    this.#options = options;
    this.#find = find;
    this.#headers = { [laneOwnerHeader]: options.id };
  }

  async start(): Promise<void> {
    const { bus, names, id } = this.#options;
    this.#subscription = await bus.subscribe(names.laneOfOwners(id), {}, (message) => this.#receive(message));
    this.#tick();
  }

  stop = once(async () => {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#saying?.cancel();
    this.#sayRecorded();
    await this.#subscription?.stop();
  });

  isOpen(subject: string): boolean {
    const { enabled, bus, runtime } = this.#options;
    if (!enabled || !bus.connected()) return false;
    const closed = this.#closed.get(subject);
    return closed === undefined || closed.until <= runtime.clock.monotonic();
  }

  /**
   * Any answer but a worker's `taken` or `done` sends the task by the queue (LANE-2). `unsure`: a worker may
   * have begun it all the same.
   */
  async offer(subject: string, body: Uint8Array): Promise<Taken | "refused" | "unsure"> {
    if (body.length > this.#options.bus.maxPayloadBytes - headroomBytes) return "refused";
    try {
      const reply = await this.#answerTo(subject, body);
      if (reply === "died") return "unsure";
      if (reply.kind !== "reply") {
        if (reply.kind === "nobody") {
          this.#close(subject, closedMs.nobody);
          return "refused";
        }
        // A worker that listens and does not answer stays in its queue group: the subject is tried less and
        // less often.
        const timeouts = (this.#closed.get(subject)?.timeouts ?? 0) + 1;
        this.#close(subject, Math.min(closedMs.slow, closedMs.timeout * 2 ** (timeouts - 1)), timeouts);
        return "unsure";
      }
      const answer = decode(LaneAnswer, reply.body);
      if (answer.kind === "ok" && (answer.value.kind === "taken" || answer.value.kind === "done")) {
        if (this.#closed.size > 0) this.#closed.delete(subject);
        return answer.value;
      }
      this.#close(subject, closedMs.refused);
    } catch (error) {
      this.#close(subject, closedMs.slow);
      this.#complain(`offer on ${subject}`, error);
    }
    return "refused";
  }

  async #answerTo(subject: string, body: Uint8Array): Promise<Reply | "died"> {
    const { bus, runtime } = this.#options;
    let giveUp: () => void = () => undefined;
    const died = new Promise<"died">((resolve) => {
      giveUp = () => resolve("died");
    });
    const offer: Offer = { subject, since: runtime.clock.monotonic(), giveUp };
    this.#offers.add(offer);
    this.#options.workSent?.();
    try {
      const reply = bus.request(subject, body, { timeoutMs: offerMs, headers: this.#headers });
      return await Promise.race([reply, died]);
    } finally {
      this.#offers.delete(offer);
    }
  }

  /**
   * Called when the worker is proved dead and has not answered since `since` (D1). Tasks it took are lost
   * (LANE-4). So is an unanswered offer from before that time, unless another worker is slow to answer and
   * may have taken it.
   */
  died({ info, since, othersAnswer }: DeadWorker): void {
    for (const work of this.#works)
      for (const task of work.since(since))
        if (!task.leased && task.workerId === info.workerId) task.recall("dead");
    if (!othersAnswer) return;
    const { names } = this.#options;
    const served = new Set(
      info.activities.flatMap(({ queue, name }) => [
        names.laneOfActivity(queue, name),
        names.laneOfWorker(info.workerId, queue, name),
      ]),
    );
    for (const offer of this.#offers) if (offer.since <= since && served.has(offer.subject)) offer.giveUp();
  }

  /** Returns the id of the live worker that holds this task, which an earlier owner sent. */
  async seek(task: LaneQuestion["tasks"][number]): Promise<string | undefined> {
    const question: LaneQuestion = { v: 1, tasks: [task] };
    try {
      const { bus, names } = this.#options;
      const reply = await bus.request(names.laneOfSeekers, encode(question), { timeoutMs: seekMs });
      if (reply.kind !== "reply") return undefined;
      const holdings = decode(LaneHoldings, reply.body);
      if (holdings.kind === "invalid" || this.#missing([task], holdings.value).length > 0) return undefined;
      return holdings.value.workerId;
    } catch (error) {
      this.#complain("seeking a task", error);
      return undefined;
    }
  }

  /** Sent for many results at a time: until then the worker only remembers its result a little longer. */
  recorded(workerId: string, key: string): void {
    const keys = this.#recorded.get(workerId);
    if (keys) keys.push(key);
    else this.#recorded.set(workerId, [key]);
    this.#saying ??= this.#options.runtime.clock.after(recordedAfterMs, () => this.#sayRecorded());
  }

  #sayRecorded(): void {
    this.#saying = undefined;
    const { bus, names } = this.#options;
    for (const [workerId, keys] of this.#recorded) {
      bus.send(names.laneOfRecordings(workerId), encode({ v: 1, keys } satisfies LaneRecordings));
    }
    this.#recorded.clear();
  }

  watch(work: OutTasks): void {
    this.#works.add(work);
  }

  unwatch(work: OutTasks): void {
    this.#works.delete(work);
  }

  #close(subject: string, ms: number, timeouts = 0): void {
    const until = this.#options.runtime.clock.monotonic() + ms;
    const before = this.#closed.get(subject)?.until ?? 0;
    this.#closed.set(subject, { until: Math.max(before, until), timeouts });
  }

  #receive({ subject, body, reply }: CoreMessage): void {
    const address = this.#options.names.parseLaneOfOwner(subject);
    const partition = address && this.#find(address.instanceId);
    if (!partition) {
      reply?.(answers.elsewhere);
      return;
    }
    if (address.verb === "returned") {
      const returned = decode(LaneReturn, body);
      if (returned.kind === "invalid") return;
      const { instanceId } = address;
      const { capability } = returned.value;
      const doubt = this.#options.capabilities.doubtTask({ ...returned.value, instanceId }, capability);
      if (doubt) this.#refused("return", doubt, instanceId);
      else partition.recall(returned.value);
      return;
    }
    const report = decode(ActivityReport, body);
    // The worker then sends the report to the inbox, where it goes to the dead letters with the reason.
    if (report.kind === "invalid" || !this.believes(address.instanceId, report.value))
      return reply?.(answers.elsewhere);
    partition.put({
      message: { kind: "activity", report: report.value },
      delivery: undefined,
      done: () => reply?.(answers.recorded),
      elsewhere: () => reply?.(answers.elsewhere),
    });
  }

  /** Checks all tasks at once (LANE-4): most work is over before the first check. */
  #tick(): void {
    this.#timer = this.#options.runtime.clock.after(slowMs, async () => {
      if (this.#options.bus.connected()) await this.#look();
      else this.#silent.clear();
      if (this.#timer) this.#tick();
    });
  }

  async #look(): Promise<void> {
    const now = this.#options.runtime.clock.monotonic();
    const byWorker = new Map<string, OutTask[]>();
    for (const [subject, { until }] of this.#closed) {
      if (until + closedMs.slow < now) this.#closed.delete(subject);
    }
    for (const work of this.#works) {
      for (const task of work.since(now - slowMs)) {
        this.#close(task.subject, closedMs.slow);
        if (task.leased) continue;
        const others = byWorker.get(task.workerId);
        if (others) others.push(task);
        else byWorker.set(task.workerId, [task]);
      }
    }
    for (const workerId of this.#silent.keys()) if (!byWorker.has(workerId)) this.#silent.delete(workerId);
    await Promise.all([...byWorker].map(([workerId, tasks]) => this.#ask(workerId, tasks, now)));
  }

  async #ask(workerId: string, tasks: readonly OutTask[], now: number): Promise<void> {
    const { bus, names } = this.#options;
    const question: LaneQuestion = { v: 1, tasks: tasks.map(({ name }) => name) };
    try {
      const reply = await bus.request(names.laneOfHoldings(workerId), encode(question), { timeoutMs: askMs });
      if (reply.kind !== "reply") {
        const since = this.#silent.get(workerId) ?? now;
        this.#silent.set(workerId, since);
        if (now - since >= patienceMs[reply.kind]) recallAll(tasks, "silent");
        return;
      }
      this.#silent.delete(workerId);
      const holdings = decode(LaneHoldings, reply.body);
      if (holdings.kind === "invalid") return;
      recallAll(
        this.#missing(question.tasks, holdings.value).flatMap((place) => tasks[place] ?? []),
        "missing",
      );
    } catch (error) {
      this.#complain(`asking ${workerId}`, error);
    }
  }

  /** False if the report is not of the worker that was given the task; the refusal is counted (C1). */
  believes(instanceId: string, report: ActivityReport): boolean {
    const doubt = doubtReport(this.#options.capabilities, instanceId, report);
    if (doubt) this.#refused("activity", doubt, instanceId);
    return doubt === undefined;
  }

  /** What the worker does not have, or cannot show that it was given. */
  #missing(tasks: LaneQuestion["tasks"], { missing, capabilities = [] }: LaneHoldings): number[] {
    const said = new Set(missing);
    let shown = 0;
    return tasks.flatMap((task, place) => {
      if (said.has(place)) return [place];
      const doubt = this.#options.capabilities.doubtTask(task, capabilities[shown++] || undefined, "held");
      if (doubt) this.#refused("holding", doubt, task.instanceId);
      return doubt ? [place] : [];
    });
  }

  #refused(what: string, why: Doubt, instanceId: string): void {
    this.#options.runtime.announce({ kind: "capability.refused", what, why, instanceId });
  }

  #complain(where: string, error: unknown): void {
    if (isFault(error, "transient")) return; // the bus is away: all tasks go by the queue until it is back
    const code = isFault(error) ? error.code : "lane_failed";
    const message = error instanceof Error ? error.message : String(error);
    this.#options.runtime.announce({ kind: "fault", where: `lane: ${where}`, code, message, error });
  }
}

function recallAll(tasks: readonly OutTask[], why: RecallWhy): void {
  for (const task of tasks) task.recall(why);
}
