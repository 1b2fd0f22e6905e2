/**
 * Watches the workers of the register: one small question to each, often while there is work, seldom otherwise. Who is
 * proved dead (D1) is taken out of the register, fenced by the entry that was there when nobody answered first: a worker
 * that lives has written a newer one, or will. Whoever took it out hands its tasks back to the queue; every orchestrator
 * recalls its own from the lane.
 */
import type { WorkerInfo } from "../../../schemas/index.ts";
import { Bucket, encode } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { once, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { LiveWorkers } from "../../../shared/sessions/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { handBackTasksOf } from "./hand-back.ts";
import { DeathProof } from "./proof.ts";

export interface DeadWorker {
  readonly info: WorkerInfo;
  /** When nobody answered for it first, monotonic. */
  readonly since: number;
  /** No other worker that could have its work is slow to answer. */
  readonly othersAnswer: boolean;
}

export interface WorkerDeathsInit extends Pick<EngineDeps, "bus" | "names" | "runtime"> {
  workers: LiveWorkers;
  onDead(dead: DeadWorker): void;
}

interface Suspect {
  readonly info: WorkerInfo;
  /** Of its entry in the register when it was first not there. */
  readonly revision: number;
}

const oftenMs = 50;
const seldomMs = 1_000;
/** So many questions a second at the most, however many workers there are. */
const perWorkerMs = 2.5;
/** How long after something was sent to workers they are asked often. */
const stirredMs = 2_000;
/** Who has not answered for so long is busy or paused. */
const slowMs = 40;
const goneTtlMs = 60_000;
const question = encode({ v: 1, tasks: [] });

export class WorkerDeaths implements Service {
  readonly #init: WorkerDeathsInit;
  readonly #proof: DeathProof;
  readonly #register: Bucket;
  readonly #suspects = new Map<string, Suspect>();
  /** Not answered yet, and since when. */
  readonly #asked = new Map<string, number>();
  /** Have not answered the last question. */
  readonly #silent = new Set<string>();
  #often = false;
  #stirredUntil = 0;
  #timer: Timer | undefined;

  constructor(init: WorkerDeathsInit) {
    this.#init = init;
    this.#proof = new DeathProof(init.bus, init.runtime.clock);
    this.#register = new Bucket(init.bus, init.names.bucket("workers"), { random: init.runtime.random });
  }

  async start(): Promise<void> {
    this.#init.workers.onChange((event) => {
      if (event.kind === "gone") this.#silent.delete(event.info.workerId);
      if (event.kind === "present") return isBusy(event.info) ? this.stir() : undefined;
      // Somebody else may have proved it; work of ours may be there.
      if (event.kind === "gone" && isServing(event.info)) {
        this.#suspects.set(event.info.workerId, { info: event.info, revision: 0 });
        this.stir();
      }
    });
    this.#arm();
  }

  stop = once(async () => {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#proof.stop();
  });

  /** Work has gone out to workers. */
  stir(): void {
    this.#stirredUntil = this.#init.runtime.clock.monotonic() + stirredMs;
    if (this.#often || !this.#timer) return;
    this.#timer.cancel();
    this.#arm();
  }

  #arm(): void {
    const { clock } = this.#init.runtime;
    const workers = this.#serving();
    const stirred = this.#stirredUntil > clock.monotonic();
    this.#often = workers.length > 0 && (stirred || this.#proof.anyMissing || workers.some(isBusy));
    const ms = this.#often ? Math.max(oftenMs, perWorkerMs * workers.length) : seldomMs;
    this.#timer = clock.after(ms, () => {
      for (const info of this.#serving()) void this.#ask(info);
      if (this.#timer) this.#arm();
    });
  }

  /** Of the register, and those that went out of it while they were in doubt. */
  #serving(): WorkerInfo[] {
    const there = this.#init.workers.workers().filter(isServing);
    if (this.#suspects.size === 0) return there;
    const ids = new Set(there.map(({ workerId }) => workerId));
    const gone = [...this.#suspects.values()].flatMap(({ info }) => (ids.has(info.workerId) ? [] : [info]));
    return [...there, ...gone];
  }

  async #ask(info: WorkerInfo): Promise<void> {
    const { names, runtime } = this.#init;
    const { workerId } = info;
    if (this.#asked.has(workerId)) return;
    this.#asked.set(workerId, runtime.clock.monotonic());
    const subject = names.laneOfHoldings(workerId);
    try {
      const sign = await this.#proof.ask(subject, question, this.#isReplaced(info));
      if (sign.kind === "silent") this.#silent.add(workerId);
      else this.#silent.delete(workerId);
      switch (sign.kind) {
        case "alive":
        case "silent":
          this.#suspects.delete(workerId);
          return;
        case "missing":
          this.#suspect(info);
          return;
        case "dead":
          if (await this.#declare(this.#suspect(info), sign.since)) this.#forget(workerId);
          return;
        case "unsure":
          return;
      }
    } catch (error) {
      this.#complain(workerId, error);
    } finally {
      this.#asked.delete(workerId);
    }
  }

  /** Its node has registered again, as the next process: an incarnation never comes back (S3). */
  #isReplaced({ nodeId, workerId, startedAt }: WorkerInfo): boolean {
    return this.#init.workers
      .workers()
      .some((other) => other.nodeId === nodeId && other.workerId !== workerId && other.startedAt > startedAt);
  }

  #suspect(info: WorkerInfo): Suspect {
    const known = this.#suspects.get(info.workerId);
    if (known) return known;
    const suspect = { info, revision: this.#init.workers.revision(info.workerId) ?? 0 };
    this.#suspects.set(info.workerId, suspect);
    return suspect;
  }

  /** False where nothing is known: it is asked again. */
  async #declare({ info, revision }: Suspect, since: number): Promise<boolean> {
    const { workerId } = info;
    const written = revision > 0 && (await this.#takeOut(workerId, revision));
    if (written === "unknown") return false;
    if (!written && (await this.#register.get(workerId, { leader: true }))) {
      // It has said that it lives since nobody answered.
      this.#forget(workerId);
      return true;
    }
    this.#init.onDead({ info, since, othersAnswer: this.#othersAnswer(info) });
    if (!written) return true;
    const tasks = await handBackTasksOf(this.#init, info);
    this.#init.runtime.announce({ kind: "worker.died", workerId, tasks });
    this.stir();
    return true;
  }

  async #takeOut(workerId: string, revision: number): Promise<boolean | "unknown"> {
    const outcome = await this.#register.delete(workerId, { revision, ttlMs: goneTtlMs, timeoutMs: 1_000 });
    return outcome.kind === "unknown" ? "unknown" : outcome.kind === "written";
  }

  #othersAnswer({ workerId: dead }: WorkerInfo): boolean {
    const before = this.#init.runtime.clock.monotonic() - slowMs;
    if (this.#serving().some(({ workerId }) => workerId !== dead && this.#silent.has(workerId))) return false;
    for (const [workerId, since] of this.#asked) if (workerId !== dead && since < before) return false;
    return true;
  }

  #forget(workerId: string): void {
    this.#suspects.delete(workerId);
    this.#proof.forget(this.#init.names.laneOfHoldings(workerId));
  }

  #complain(workerId: string, error: unknown): void {
    if (isFault(error, "transient")) return; // asked again
    const code = isFault(error) ? error.code : "probe_failed";
    const message = `worker ${workerId}: ${error instanceof Error ? error.message : String(error)}`;
    this.#init.runtime.announce({ kind: "fault", where: "worker deaths", code, message, error });
  }
}

/** Only these listen for the question; what others hold is held by leases. */
const isServing = ({ activities }: WorkerInfo): boolean => activities.length > 0;
const isBusy = ({ slots }: WorkerInfo): boolean => slots.activities.used > 0;
