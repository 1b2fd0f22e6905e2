/**
 * The lane sends work straight to a live worker, and the worker sends its result straight back, as plain
 * messages. A step then costs one durable write, the history's own, instead of three. Nothing rests on a
 * plain message:
 *
 * LANE-1 Work goes by the lane only while its instance keeps an inbox message unacknowledged, its anchor. If
 *    this process dies, the anchor is redelivered, and the orchestrator that receives it finds out what
 *    became of the work.
 * LANE-2 The answer `taken` means that a worker holds the work; a result as the answer means the same. Any
 *    other answer, or none, sends the work by the queue (offers.ts).
 * LANE-3 A result that came by the lane is answered when its turn is over, as an inbox message is
 *    acknowledged (TURN-2). An unanswered result comes again by the inbox, and the first one counts (T5).
 * LANE-4 A worker that is gone, or does not know a task it took, has lost it: the task goes out again by the
 *    queue.
 */
import {
  ActivityReport,
  type LaneAnswer,
  LaneHoldings,
  type LaneQuestion,
  type LaneRecordings,
  LaneReturn,
  type SessionReport,
  type WorkerInfo,
} from "../../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../../shared/bus/index.ts";
import {
  type Capabilities,
  type Doubt,
  doubtReport,
  doubtSessionReport,
} from "../../../shared/capabilities/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { announceFault, once, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { DeadWorker } from "../deaths/worker-deaths.ts";
import type { Mail } from "../mail.ts";
import { ClaimOffers } from "./claim-offers.ts";
import { closedMs, Offers, type OffersOptions } from "./offers.ts";
import type { OutTask, OutTasks, RecallWhy } from "./out-task.ts";

interface LaneOptions extends OffersOptions {
  /** Checks the capabilities that workers send with their messages (C1). */
  capabilities: Capabilities;
}

/** Receives lane results for an instance of this orchestrator. */
export interface LanePartition {
  put(mail: Mail): void;
  recall(task: { execution: number; of: number; attempt: number }): void;
}

const seekMs = 2_000;
const askMs = 1_000;
const recordedAfterMs = 10;
/**
 * Longer work gains nothing from the lane and holds up its anchor: the next task of its kind goes by the
 * queue.
 */
const slowMs = 1_000;
/**
 * `nobody`: no process subscribes; the worker is gone or about to reconnect. `timeout`: the worker listens
 * but does not answer; its event loop may be busy.
 */
const patienceMs = { nobody: 5_000, timeout: 30_000 };

const answers = {
  recorded: encode({ v: 1, kind: "recorded" } satisfies LaneAnswer),
  elsewhere: encode({ v: 1, kind: "elsewhere" } satisfies LaneAnswer),
};

export class Lane implements Service {
  readonly #options: LaneOptions;
  readonly #find: (instanceId: string) => LanePartition | undefined;
  readonly offers: Offers;
  readonly claims: ClaimOffers;
  readonly #works = new Set<OutTasks>();
  /** Worker id → since when the worker has not answered. */
  readonly #silent = new Map<string, number>();
  /** Worker id → keys of recorded results not yet reported to the worker. */
  readonly #recorded = new Map<string, string[]>();
  #recordedTimer: Timer | undefined;
  #subscription: Stoppable | undefined;
  #timer: Timer | undefined;

  constructor(options: LaneOptions, find: (instanceId: string) => LanePartition | undefined) {
    this.#options = options;
    this.#find = find;
    this.offers = new Offers(options);
    this.claims = new ClaimOffers(options, this.offers);
  }

  async start(): Promise<void> {
    const { bus, names, id } = this.#options;
    this.#subscription = await bus.subscribe(names.laneOfOwners(id), {}, (message) => this.#receive(message));
    this.#tick();
  }

  stop = once(async () => {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#recordedTimer?.cancel();
    this.#sendRecorded();
    await this.#subscription?.stop();
  });

  /**
   * Called when the worker is proved dead and has not answered since `since` (D1). Tasks it took are lost
   * (LANE-4).
   */
  died(dead: DeadWorker): void {
    for (const work of this.#works)
      for (const task of work.since(dead.since))
        if (!task.leased && task.workerId === dead.info.workerId) task.recall("dead");
    this.offers.died(dead);
  }

  /**
   * Returns the id of the live worker that holds this task, which an earlier owner sent. A slow worker may
   * hold it: the search ends before its time only when every worker that serves the activity has answered
   * that it does not.
   */
  async seek(task: LaneQuestion["tasks"][number], queue: string, name: string): Promise<string | undefined> {
    const { names, workers } = this.#options;
    const serving = workers.workers().filter(({ activities }) => serves(activities, queue, name));
    const found = this.#holder(names.laneOfSeekers, task);
    const each = serving.map(({ workerId }) => this.#holder(names.laneOfHoldings(workerId), task));
    const answered = Promise.all(each).then((all) => all.length > 0 && all.every((one) => one === "free"));
    const holder = await Promise.race([found, answered.then((isFree) => (isFree ? "free" : found))]);
    return typeof holder === "string" ? undefined : holder.workerId;
  }

  /** `free`: the worker does not have the task. */
  async #holder(
    subject: string,
    task: LaneQuestion["tasks"][number],
  ): Promise<{ workerId: string } | "free" | "silent"> {
    const question: LaneQuestion = { v: 1, tasks: [task] };
    try {
      const reply = await this.#options.bus.request(subject, encode(question), { timeoutMs: seekMs });
      const holdings = reply.kind === "reply" ? decode(LaneHoldings, reply.body) : undefined;
      if (holdings?.kind !== "ok") return "silent";
      return this.#missing([task], holdings.value).length > 0 ? "free" : holdings.value;
    } catch (error) {
      this.#complain("seeking a task", error);
      return "silent";
    }
  }

  /**
   * Confirms a recorded result to its worker; collects confirmations for a moment, because no worker waits
   * for them.
   */
  recorded(workerId: string, key: string): void {
    const keys = this.#recorded.get(workerId);
    if (keys) keys.push(key);
    else this.#recorded.set(workerId, [key]);
    this.#recordedTimer ??= this.#options.runtime.clock.after(recordedAfterMs, () => this.#sendRecorded());
  }

  #sendRecorded(): void {
    this.#recordedTimer = undefined;
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
    this.offers.sweep();
    for (const work of this.#works) {
      for (const task of work.since(now - slowMs)) {
        this.offers.close(task.subject, closedMs.slow);
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

  /**
   * Returns false if the report does not come from the worker that was given the task; announces the refusal
   * (C1).
   */
  believes(instanceId: string, report: ActivityReport): boolean {
    const doubt = doubtReport(this.#options.capabilities, instanceId, report);
    if (doubt) this.#refused("activity", doubt, instanceId);
    return doubt === undefined;
  }

  /** The same for a report about a session. */
  believesSession(instanceId: string, report: SessionReport): boolean {
    const doubt = doubtSessionReport(this.#options.capabilities, instanceId, report);
    if (doubt) this.#refused("session", doubt, instanceId);
    return doubt === undefined;
  }

  /** The places of the tasks that the worker does not hold, or for which it shows no valid capability. */
  #missing(tasks: LaneQuestion["tasks"], { missing, capabilities = [] }: LaneHoldings): number[] {
    const reported = new Set(missing);
    let shown = 0;
    return tasks.flatMap((task, place) => {
      if (reported.has(place)) return [place];
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
    announceFault(this.#options.runtime, `lane: ${where}`, error, { otherwise: "lane_failed" });
  }
}

const serves = (activities: WorkerInfo["activities"], queue: string, name: string): boolean =>
  activities.some((served) => served.queue === queue && served.name === name);

function recallAll(tasks: readonly OutTask[], why: RecallWhy): void {
  for (const task of tasks) task.recall(why);
}
