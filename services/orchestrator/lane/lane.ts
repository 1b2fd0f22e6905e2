/**
 * The lane: work straight to a live worker and its result straight back, as plain messages. One durable write a step,
 * the history's own, instead of three. Nothing rests on a plain message:
 *
 * LANE-1 Work goes by the lane only while its instance keeps an inbox message unacknowledged, its anchor. If this process
 *    dies, the anchor comes again, and whoever gets it finds out what became of the work.
 * LANE-2 `taken` means in a worker's hands, and so does its result as the answer. Whatever else comes back, or nothing, sends the work by the queue.
 * LANE-3 A result that came by the lane is answered when its turn is over, as an inbox message is acknowledged (TURN-2).
 *    Unanswered it comes again by the inbox, and the first one counts (T5).
 * LANE-4 A worker that is gone, or does not know a task it took, has lost it: the task goes out again by the queue.
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
  type Stoppable,
  type Subjects,
} from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { once, type Runtime, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { Mail } from "../mail.ts";
import type { OutTask, OutTasks, RecallWhy } from "./out-task.ts";

export interface LaneOptions {
  id: string;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  /** False: nothing new is sent by the lane. */
  enabled: boolean;
}

/** In a worker's hands, or over already. */
export type Taken = Extract<LaneAnswer, { kind: "taken" | "done" }>;

/** Where results go; undefined where the instance is not with this orchestrator. */
export interface LanePartition {
  put(mail: Mail): void;
  recall(task: { execution: number; of: number; attempt: number }): void;
}

/** Who is not there is known at once; who is there may be busy. */
const offerMs = 2_000;
const seekMs = 2_000;
const askMs = 1_000;
/** For subject and headers, inside the server's limit. */
const headroomBytes = 8 * 1024;
const recordedAfterMs = 10;
/** How long a subject is left alone after each kind of disappointment. */
const closedMs = { refused: 20, nobody: 1_000, timeout: 2_000, slow: 60_000 };
/** Work that takes longer is no gain on the lane and holds its anchor: the next of its kind goes by the queue. */
const slowMs = 1_000;
/** Nobody listens: gone, or about to reconnect. Somebody does and says nothing: its event loop may be busy. */
const patienceMs = { nobody: 5_000, timeout: 30_000 };

const answers = {
  recorded: encode({ v: 1, kind: "recorded" } satisfies LaneAnswer),
  elsewhere: encode({ v: 1, kind: "elsewhere" } satisfies LaneAnswer),
};

export class Lane implements Service {
  readonly #options: LaneOptions;
  readonly #find: (instanceId: string) => LanePartition | undefined;
  readonly #headers: Readonly<Record<string, string>>;
  /** Subjects that are left alone until then, monotonic; and how often in a row nobody answered there. */
  readonly #closed = new Map<string, { until: number; timeouts: number }>();
  readonly #works = new Set<OutTasks>();
  /** Worker → since when it has not answered. */
  readonly #silent = new Map<string, number>();
  /** By worker, not yet said. */
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

  /** Anything but a worker's word sends it by the queue (LANE-2). `unsure`: it may have been begun all the same. */
  async offer(subject: string, body: Uint8Array): Promise<Taken | "refused" | "unsure"> {
    if (body.length > this.#options.bus.maxPayloadBytes - headroomBytes) return "refused";
    try {
      const reply = await this.#options.bus.request(subject, body, {
        timeoutMs: offerMs,
        headers: this.#headers,
      });
      if (reply.kind !== "reply") {
        if (reply.kind === "nobody") {
          this.#close(subject, closedMs.nobody);
          return "refused";
        }
        // One that listens and does not answer stays in its queue group: it is tried more and more seldom.
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

  /** Which live worker has this task, taken from an owner before us. */
  async seek(task: LaneQuestion["tasks"][number]): Promise<string | undefined> {
    const question: LaneQuestion = { v: 1, tasks: [task] };
    try {
      const { bus, names } = this.#options;
      const reply = await bus.request(names.laneOfSeekers, encode(question), { timeoutMs: seekMs });
      if (reply.kind !== "reply") return undefined;
      const holdings = decode(LaneHoldings, reply.body);
      return holdings.kind === "ok" && holdings.value.missing.length === 0
        ? holdings.value.workerId
        : undefined;
    } catch (error) {
      this.#complain("seeking a task", error);
      return undefined;
    }
  }

  /** Said for many at a time: the worker only remembers a little longer. */
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
      if (returned.kind === "ok") partition.recall(returned.value);
      return;
    }
    const report = decode(ActivityReport, body);
    // By the inbox it will be buried with its reason.
    if (report.kind === "invalid") return reply?.(answers.elsewhere);
    partition.put({
      message: { kind: "activity", report: report.value },
      delivery: undefined,
      done: () => reply?.(answers.recorded),
      elsewhere: () => reply?.(answers.elsewhere),
    });
  }

  /** LANE-4, for all at once: most work is over before the first look. */
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
        holdings.value.missing.flatMap((place) => tasks[place] ?? []),
        "missing",
      );
    } catch (error) {
      this.#complain(`asking ${workerId}`, error);
    }
  }

  #complain(where: string, error: unknown): void {
    if (isFault(error, "transient")) return; // the bus is away: everything goes by the queue until it is back
    const code = isFault(error) ? error.code : "lane_failed";
    const message = error instanceof Error ? error.message : String(error);
    this.#options.runtime.announce({ kind: "fault", where: `lane: ${where}`, code, message, error });
  }
}

function recallAll(tasks: readonly OutTask[], why: RecallWhy): void {
  for (const task of tasks) task.recall(why);
}
