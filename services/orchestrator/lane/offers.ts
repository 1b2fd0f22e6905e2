/**
 * Offers work to workers by the lane, and reports the outcome of each offer (LANE-2).
 *
 * Tasks of one activity that are offered at the same time, by one turn or by several, share messages. A wide
 * fan-out is spread over the workers that serve the activity, some messages at a time; what a worker has no
 * slot for is offered again as long as workers take some of it, and goes by the queue when none does.
 */
import {
  LaneAnswer,
  type LaneAnswer as LaneAnswerOf,
  laneOwnerHeader,
  laneTasksHeader,
  type WorkerInfo,
} from "../../../schemas/index.ts";
import { type Bus, decode, type Headers, type Reply, type Subjects } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Generation } from "../../../shared/fleet/index.ts";
import { announceFault, type Runtime } from "../../../shared/runtime/index.ts";
import type { LiveWorkers } from "../../../shared/sessions/index.ts";
import type { DeadWorker } from "../deaths/worker-deaths.ts";

export interface OffersOptions {
  /** The orchestrator that results go back to. */
  id: string;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  /** False: nothing is offered. */
  enabled: boolean;
  generation: Pick<Generation, "allows">;
  workers: Pick<LiveWorkers, "workers">;
  /** Called when work was sent to workers, so that dead ones are noticed sooner. */
  workSent?: (() => void) | undefined;
}

/** A worker took the task, or has completed it already. */
export type Taken = Extract<LaneAnswerOf, { kind: "taken" | "done" }>;

/**
 * `refused`: no worker has it. `unsure`: a worker may have begun it. Both send the work by the queue
 * (LANE-2).
 */
export type Answered = Taken | "refused" | "unsure";

export interface SessionHolder {
  readonly sessionId: string;
  readonly workerId: string;
}

/** An offer that no worker has answered yet. */
interface Offer {
  readonly subject: string;
  /** Set for calls of sessions: only the holder of the session can answer. */
  readonly holder: SessionHolder | undefined;
  readonly since: number;
  giveUp(): void;
}

interface WaitingTask {
  readonly body: Uint8Array;
  /** False if this orchestrator lost the partition meanwhile: its successor sends the task. */
  mayGo(): boolean;
  resolve(answer: Answered): void;
}

/** Tasks of one activity that wait to be offered. */
interface Group {
  readonly subject: string;
  waiting: WaitingTask[];
  /** Unanswered messages by the subject they were sent to. */
  readonly inFlight: Map<string, number>;
  collecting: boolean;
}

/** Where messages of a group may go: to a worker by name, or to any worker. */
interface Channel {
  readonly subject: string;
  /** Most tasks in a message. */
  readonly room: number;
}

/** Long, because the server reports a missing worker at once, and a worker that is there may be busy. */
const offerMs = 2_000;
/** Room for subject and headers within the server's payload limit. */
const headroomBytes = 8 * 1024;
/** Messages that may be unanswered at a time for each worker; together they fill its slots at most. */
const mostMessages = 4;
const mostTasks = 32;
/** How long the lane avoids a subject after each kind of failed offer. */
export const closedMs = { refused: 20, nobody: 1_000, timeout: 2_000, slow: 60_000 };
/** Turns whose commits one read of the socket acknowledged get here within so many microtasks. */
const togetherWithin = 8;

export class Offers {
  readonly #options: OffersOptions;
  readonly #headers: Headers;
  /** Subject → monotonic time until which the lane avoids it, and how many offers in a row timed out. */
  readonly #closed = new Map<string, { until: number; timeouts: number }>();
  readonly #unanswered = new Set<Offer>();
  readonly #groups = new Map<string, Group>();
  /** The workers that serve an activity, as long as the list of workers is the same. */
  readonly #known = new Map<string, { list: readonly WorkerInfo[]; channels: readonly Channel[] }>();
  #rounds = 0;

  constructor(options: OffersOptions) {
    this.#options = options;
    this.#headers = { [laneOwnerHeader]: options.id };
  }

  get enabled(): boolean {
    return this.#options.enabled;
  }

  isOpen(subject: string): boolean {
    const { enabled, bus } = this.#options;
    return enabled && bus.connected() && !this.#isClosed(subject);
  }

  /** Offers one message, which one worker takes or refuses. */
  async offer(subject: string, body: Uint8Array, holder?: SessionHolder): Promise<Answered> {
    const answer = await this.#ask(subject, body, this.#headers, holder);
    if (typeof answer === "string") return answer === "nobody" ? "refused" : answer;
    return takenOrRefused(answer);
  }

  /** Offers a task, in one message with others that are offered at the same time. */
  offerTask(subject: string, body: Uint8Array, mayGo: () => boolean): Promise<Answered> {
    if (!this.#options.generation.allows(2)) return this.offer(subject, body);
    return new Promise((resolve) => {
      const group = this.#groups.get(subject) ?? newGroup(subject);
      this.#groups.set(subject, group);
      group.waiting.push({ body, mayGo, resolve });
      if (!group.collecting) void this.#collect(group);
    });
  }

  /**
   * Called when the worker is proved dead (D1): an unanswered offer from before that time is lost, unless
   * another worker is slow to answer and may have taken it.
   */
  died({ info, since, othersAnswer }: DeadWorker): void {
    for (const offer of this.#unanswered)
      if (offer.since <= since && offer.holder?.workerId === info.workerId) offer.giveUp();
    if (!othersAnswer) return;
    const { names } = this.#options;
    const served = new Set(
      info.activities.flatMap(({ queue, name }) => [
        names.laneOfActivity(queue, name),
        names.laneOfWorker(info.workerId, queue, name),
      ]),
    );
    for (const offer of this.#unanswered)
      if (offer.since <= since && served.has(offer.subject)) offer.giveUp();
  }

  /**
   * Called when the loss of a session is reported: its calls that are offered go to a holder that will not answer.
   * One that a live holder is about to answer goes by the queue too, and the holder knows it (LANE-2).
   */
  sessionLost(sessionId: string): void {
    for (const offer of this.#unanswered) if (offer.holder?.sessionId === sessionId) offer.giveUp();
  }

  close(subject: string, ms: number, timeouts = 0): void {
    const until = this.#options.runtime.clock.monotonic() + ms;
    const before = this.#closed.get(subject)?.until ?? 0;
    this.#closed.set(subject, { until: Math.max(before, until), timeouts });
  }

  /** Forgets subjects that have been open again for long. */
  sweep(): void {
    const now = this.#options.runtime.clock.monotonic();
    for (const [subject, { until }] of this.#closed)
      if (until + closedMs.slow < now) this.#closed.delete(subject);
  }

  #isClosed(subject: string): boolean {
    const closed = this.#closed.get(subject);
    return closed !== undefined && closed.until > this.#options.runtime.clock.monotonic();
  }

  async #collect(group: Group): Promise<void> {
    group.collecting = true;
    for (let hop = 0; hop < togetherWithin; hop++) await undefined;
    group.collecting = false;
    this.#send(group);
  }

  #send(group: Group): void {
    const channels = this.#channels(group);
    for (;;) {
      group.waiting = group.waiting.filter((task) => task.mayGo() || task.resolve("refused"));
      if (group.waiting.length === 0) break;
      const free = channels.filter(
        ({ subject }) => !this.#isClosed(subject) && (group.inFlight.get(subject) ?? 0) < mostMessages,
      );
      const [next] = free.sort(
        (a, b) => (group.inFlight.get(a.subject) ?? 0) - (group.inFlight.get(b.subject) ?? 0),
      );
      if (!next) break;
      const share = Math.ceil(group.waiting.length / free.length);
      void this.#offerTogether(group, next, this.#popTasks(group, Math.min(share, next.room)));
    }
    if (group.inFlight.size > 0) return;
    if (group.waiting.length > 0) this.close(group.subject, closedMs.refused);
    for (const task of group.waiting) task.resolve("refused");
    this.#groups.delete(group.subject);
  }

  /** One task goes to whichever worker the server picks, several are dealt out to the workers by name. */
  #channels({ subject, waiting }: Group): Channel[] {
    const serving = this.#serving(subject);
    if (waiting.length < 2 || serving.length < 2) return [{ subject, room: serving[0]?.room ?? 1 }];
    // Start with another worker each time.
    const first = this.#rounds++ % serving.length;
    return [...serving.slice(first), ...serving.slice(0, first)];
  }

  #serving(subject: string): readonly Channel[] {
    const { names, workers } = this.#options;
    const list = workers.workers();
    const known = this.#known.get(subject);
    if (known?.list === list) return known.channels;
    const channels = list.flatMap(({ workerId, draining, activities, slots }): Channel[] => {
      const served = activities.find(({ queue, name }) => names.laneOfActivity(queue, name) === subject);
      if (draining || !served) return [];
      const room = Math.max(1, Math.min(mostTasks, Math.floor(slots.activities.max / mostMessages)));
      return [{ subject: names.laneOfWorker(workerId, served.queue, served.name), room }];
    });
    this.#known.set(subject, { list, channels });
    return channels;
  }

  #popTasks(group: Group, most: number): WaitingTask[] {
    const limit = this.#options.bus.maxPayloadBytes - headroomBytes;
    let bytes = 0;
    let count = 0;
    for (const { body } of group.waiting) {
      bytes += body.length + 1;
      if (count > 0 && (count === most || bytes > limit)) break;
      count++;
    }
    return group.waiting.splice(0, count);
  }

  async #offerTogether(group: Group, { subject }: Channel, tasks: readonly WaitingTask[]): Promise<void> {
    const { inFlight } = group;
    inFlight.set(subject, (inFlight.get(subject) ?? 0) + 1);
    const answers = await this.#answersTo(subject, tasks);
    const left = (inFlight.get(subject) ?? 1) - 1;
    if (left > 0) inFlight.set(subject, left);
    else inFlight.delete(subject);
    const isTaken = (answer: Answered | "nobody" | undefined) => typeof answer === "object";
    const takesSome = answers.some(isTaken);
    tasks.forEach((task, place) => {
      const answer = answers[place] ?? "unsure";
      const again = answer === "nobody" ? subject !== group.subject : answer === "refused" && takesSome;
      if (again) group.waiting.push(task);
      else task.resolve(answer === "nobody" ? "refused" : answer);
    });
    this.#send(group);
  }

  async #answersTo(
    subject: string,
    tasks: readonly WaitingTask[],
  ): Promise<readonly (Answered | "nobody")[]> {
    const [first] = tasks;
    const answer =
      tasks.length === 1 && first
        ? await this.#ask(subject, first.body, this.#headers)
        : await this.#ask(subject, joined(tasks), {
            ...this.#headers,
            [laneTasksHeader]: String(tasks.length),
          });
    if (typeof answer === "string") return tasks.map(() => answer);
    return answer.kind === "several"
      ? answer.answers.map(takenOrRefused)
      : tasks.map(() => takenOrRefused(answer));
  }

  /** `nobody`: no worker listens on the subject, so none has the task. */
  async #ask(
    subject: string,
    body: Uint8Array,
    headers: Headers,
    holder?: SessionHolder,
  ): Promise<LaneAnswerOf | "refused" | "unsure" | "nobody"> {
    if (body.length > this.#options.bus.maxPayloadBytes - headroomBytes) return "refused";
    try {
      const reply = await this.#reply(subject, body, headers, holder);
      if (reply === "died") return "unsure";
      if (reply.kind === "nobody") {
        this.close(subject, closedMs.nobody);
        return "nobody";
      }
      if (reply.kind === "timeout") {
        // A worker that listens and does not answer stays in its queue group: the subject is tried less and
        // less often.
        const timeouts = (this.#closed.get(subject)?.timeouts ?? 0) + 1;
        this.close(subject, Math.min(closedMs.slow, closedMs.timeout * 2 ** (timeouts - 1)), timeouts);
        return "unsure";
      }
      const answer = decode(LaneAnswer, reply.body);
      if (answer.kind === "ok" && takesAny(answer.value)) {
        if (this.#closed.size > 0) this.#closed.delete(subject);
        return answer.value;
      }
      this.close(subject, closedMs.refused);
    } catch (error) {
      this.close(subject, closedMs.slow);
      this.#complain(subject, error);
    }
    return "refused";
  }

  async #reply(
    subject: string,
    body: Uint8Array,
    headers: Headers,
    holder: SessionHolder | undefined,
  ): Promise<Reply | "died"> {
    const { bus, runtime, workSent } = this.#options;
    let giveUp: () => void = () => undefined;
    const died = new Promise<"died">((resolve) => {
      giveUp = () => resolve("died");
    });
    const offer: Offer = { subject, holder, since: runtime.clock.monotonic(), giveUp };
    this.#unanswered.add(offer);
    workSent?.();
    try {
      return await Promise.race([bus.request(subject, body, { timeoutMs: offerMs, headers }), died]);
    } finally {
      this.#unanswered.delete(offer);
    }
  }

  #complain(subject: string, error: unknown): void {
    if (isFault(error, "transient")) return; // the bus is away: all tasks go by the queue until it is back
    announceFault(this.#options.runtime, `lane: offer on ${subject}`, error, { otherwise: "lane_failed" });
  }
}

const newGroup = (subject: string): Group => ({
  subject,
  waiting: [],
  inFlight: new Map(),
  collecting: false,
});

const takenOrRefused = (answer: LaneAnswerOf): Taken | "refused" =>
  answer.kind === "taken" || answer.kind === "done" ? answer : "refused";

const takesAny = (answer: LaneAnswerOf): boolean =>
  answer.kind === "several"
    ? answer.answers.some((one) => one.kind !== "refused")
    : answer.kind === "taken" || answer.kind === "done";

/** `LaneTasks` of tasks that are encoded already. */
function joined(tasks: readonly WaitingTask[]): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from('{"v":1,"tasks":[')];
  tasks.forEach(({ body }, place) => {
    if (place > 0) parts.push(comma);
    parts.push(body);
  });
  parts.push(Buffer.from("]}"));
  return Buffer.concat(parts);
}

const comma = Buffer.from(",");
