/**
 * Watches the workers in the register with one small question to each: often while there is work, seldom
 * otherwise. A worker that is proved dead (D1) is removed from the register, fenced by the revision of its
 * entry when it first failed to answer: a live worker has written a newer entry, or will. The orchestrator
 * that removed the entry hands the worker's tasks back to the queue; every orchestrator recalls its own tasks
 * from the lane.
 */
import type { WorkerInfo } from "../../../schemas/index.ts";
import { Bucket, encode } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { announceFault, once, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { LiveWorkers } from "../../../shared/sessions/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { handBackTasksOf } from "./hand-back.ts";
import { DeathProof } from "./proof.ts";

export interface DeadWorker {
  readonly info: WorkerInfo;
  /** Monotonic time at which the worker was first found missing. */
  readonly since: number;
  /** True if every other worker that could hold this worker's tasks answers promptly. */
  readonly othersAnswer: boolean;
}

interface WorkerDeathsInit extends Pick<EngineDeps, "bus" | "names" | "runtime"> {
  workers: LiveWorkers;
  onDead(dead: DeadWorker): void;
}

interface Suspect {
  readonly info: WorkerInfo;
  /** Revision of the worker's register entry when the worker was first found missing. */
  readonly revision: number;
}

const oftenMs = 50;
const seldomMs = 1_000;
/** Caps the number of questions per second, however many workers there are. */
const perWorkerMs = 2.5;
/** How long workers are asked often after work was sent to them. */
const stirredMs = 2_000;
/** A worker that has not answered for this long is busy or paused. */
const slowMs = 40;
const goneTtlMs = 60_000;
const question = encode({ v: 1, tasks: [] });

export class WorkerDeaths implements Service {
  readonly #init: WorkerDeathsInit;
  readonly #proof: DeathProof;
  readonly #register: Bucket;
  readonly #suspects = new Map<string, Suspect>();
  /** Workers with an unanswered question, and when it was asked. */
  readonly #asked = new Map<string, number>();
  /** Workers that did not answer the last question. */
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
      // Another orchestrator may have proved the death; tasks of this orchestrator may be with that worker.
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

  /** Called when work was sent to workers: asks them often for a while. */
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

  /** The workers in the register, and suspects that left it before their death was proved. */
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

  /** True if the worker's node has registered a newer process: an incarnation never comes back (S3). */
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

  /** Returns false if the outcome is unknown; the worker is then asked again. */
  async #declare({ info, revision }: Suspect, since: number): Promise<boolean> {
    const { workerId } = info;
    const written = revision > 0 && (await this.#removeEntry(workerId, revision));
    if (written === "unknown") return false;
    if (!written && (await this.#register.get(workerId, { leader: true }))) {
      // The worker has renewed its entry since it failed to answer: it is alive.
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

  async #removeEntry(workerId: string, revision: number): Promise<boolean | "unknown"> {
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
    if (isFault(error, "transient")) return; // the worker is asked again
    announceFault(this.#init.runtime, "worker deaths", error, {
      otherwise: "probe_failed",
      about: `worker ${workerId}`,
    });
  }
}

/** Only workers with activities listen for the question; all other work is held by leases. */
const isServing = ({ activities }: WorkerInfo): boolean => activities.length > 0;
const isBusy = ({ slots }: WorkerInfo): boolean => slots.activities.used > 0;
