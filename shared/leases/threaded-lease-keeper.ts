import type { Worker, WorkerOptions } from "node:worker_threads";
import type { LeaseValue } from "../../schemas/index.ts";
import type { Bus } from "../bus/index.ts";
import { Fault, messageOf } from "../errors/index.ts";
import {
  announceFault,
  once,
  type Runtime,
  startThread,
  systemRandom,
  type Timer,
  token,
  within,
} from "../runtime/index.ts";
import { claimKey, leaseBody } from "./claim.ts";
import { deadlineOf, Holding } from "./holding.ts";
import {
  type ClaimOutcome,
  type Lease,
  type Leases,
  type LossWhy,
  type LostListener,
  requireTtl,
} from "./lease.ts";
import { LeaseStore } from "./lease-store.ts";
import { processClock } from "./process-clock.ts";
import { SharedInstant } from "./shared-instant.ts";
import {
  type Answer,
  type FromThread,
  fromPlainFault,
  type LeaseConnection,
  type ThreadSetup,
  type ToThread,
} from "./thread-protocol.ts";

interface ThreadedLeaseKeeperOptions {
  connection: LeaseConnection;
  /**
   * Claims use this connection and only renewals use the thread, which saves the claim two hops between
   * threads. Undefined: everything goes through the thread.
   */
  bus?: Bus;
  /** Full name of the bucket: `names.bucket("leases")`. */
  bucket: string;
  /** The clock is always the process's own: both threads must agree on it. */
  runtime: Pick<Runtime, "announce">;
  ttlMs: number;
  /** How long the main loop may be blocked. Default: the TTL of each lease. */
  stallLimitMs?: number;
  giveUpAfterMs?: number;
  /** For holders of sessions: prefix of the subjects for reports that this process stalled. */
  prefix?: string;
  /** Starts the thread: one with further duties, or, in tests, one that misbehaves. */
  spawn?: (workerData: ThreadSetup) => Worker;
}

/** The same default as in `LeaseKeeper`. */
const defaultGiveUpAfterMs = 5000;

interface KeptLease {
  id: number;
  heldUntil: SharedInstant;
}

/**
 * Like `LeaseKeeper`, but renewing on a thread of its own (S8). The main loop proves that it runs by writing
 * the time to memory that both threads share; the deadline of each lease comes back in the same way, so that
 * a process that wakes from a pause knows which leases it lost before it reads any message (F10).
 */
export class ThreadedLeaseKeeper implements Leases {
  readonly #options: ThreadedLeaseKeeperOptions;
  readonly #store: LeaseStore | undefined;
  readonly #beatEveryMs: number;
  readonly #beat = new SharedInstant();
  readonly #leases = new Map<Lease, KeptLease>();
  readonly #byId = new Map<number, Lease>();
  readonly #waiting = new Map<
    number,
    { resolve: (answer: Answer) => void; reject: (error: unknown) => void }
  >();
  readonly #listeners = new Set<LostListener>();
  #thread: Worker | undefined;
  #beating: Timer | undefined;
  #lastId = 0;
  #skewMs = 0;

  constructor(options: ThreadedLeaseKeeperOptions) {
    this.#options = { ...options, ttlMs: requireTtl(options.ttlMs) };
    this.#store = options.bus && new LeaseStore(options.bus, options.bucket);
    this.#beatEveryMs = Math.min(options.ttlMs, options.stallLimitMs ?? options.ttlMs, 5000) / 10;
  }

  start = once(async () => {
    this.#proveLife();
    await this.#spawn();
  });

  /** Like `LeaseKeeper`, releases nothing: leases still held expire. */
  stop = once(async () => {
    this.#beating?.cancel();
    this.#beating = undefined;
    const thread = this.#thread;
    this.#thread = undefined;
    for (const { heldUntil } of this.#leases.values()) heldUntil.set(0);
    this.#leases.clear();
    this.#byId.clear();
    this.#refuseWaiting("the keeper was stopped");
    if (thread) {
      const stopped = new Promise<void>((resolve) => {
        thread.on("exit", () => resolve());
        thread.on("message", (message: FromThread) => message.kind === "stopped" && resolve());
      });
      thread.postMessage({ kind: "stop" } satisfies ToThread);
      await within(2000, stopped, processClock); // without a server, closing the connection can take for ever
      await thread.terminate();
    }
  });

  async claim(key: string, value: LeaseValue, ttlMs?: number): Promise<ClaimOutcome> {
    if (ttlMs !== undefined) requireTtl(ttlMs);
    if (this.#store) return this.#claimHere(this.#store, key, value, ttlMs ?? this.#options.ttlMs);
    const id = ++this.#lastId;
    const heldUntil = new SharedInstant();
    const answer = await this.#ask({ kind: "claim", id, key, value, ttlMs, heldUntil: heldUntil.buffer });
    switch (answer.kind) {
      case "granted": {
        const lease: Lease = Object.freeze({ key, epoch: answer.epoch, ttlMs: answer.ttlMs });
        this.#remember(lease, { id, heldUntil });
        return { kind: "granted", lease };
      }
      case "taken":
        return answer;
      case "failed":
        throw fromPlainFault(answer.fault);
      case "released":
      case "gone":
        throw new Fault("bug", {
          code: "lease_thread_answer",
          message: `a claim was answered ${answer.kind}`,
        });
    }
  }

  /**
   * The thread renews from the moment it gets the message; until then the deadline of the claim itself holds
   * (LEASE-1).
   */
  async #claimHere(store: LeaseStore, key: string, value: LeaseValue, ttlMs: number): Promise<ClaimOutcome> {
    if (this.#beating === undefined) throw unavailable("the keeper is not running");
    if (this.#thread === undefined) await this.#spawn();
    const claimId = token(systemRandom);
    const body = leaseBody(value);
    const skewMs = this.#skewMs;
    const giveUpAfterMs = this.#options.giveUpAfterMs ?? defaultGiveUpAfterMs;
    const request = { key, claimId, body, ttlMs, giveUpAfterMs, skewMs };
    const won = await claimKey(store, processClock, request);
    if (won.kind === "taken") return won;
    const lease: Lease = Object.freeze({ key, epoch: won.epoch, ttlMs });
    if (this.#thread === undefined) {
      // The keeper was stopped, or its thread died meanwhile: the lease would never be renewed.
      const { revision, beganAt } = won;
      const clock = processClock;
      const holding = new Holding({ store, clock, lease, claimId, body, revision, beganAt, skewMs });
      await holding.release(giveUpAfterMs);
      return { kind: "taken", why: "spent", holder: undefined, revision: won.epoch };
    }
    const id = ++this.#lastId;
    const heldUntil = new SharedInstant();
    heldUntil.set(deadlineOf(ttlMs, won.beganAt, skewMs));
    this.#remember(lease, { id, heldUntil });
    const claimed = { key, claimId, body, ttlMs, won };
    this.#thread.postMessage({
      kind: "keep",
      ...{ id, claimed, value, heldUntil: heldUntil.buffer },
    } satisfies ToThread);
    return { kind: "granted", lease };
  }

  #remember(lease: Lease, held: KeptLease): void {
    this.#leases.set(lease, held);
    this.#byId.set(held.id, lease);
  }

  async release(lease: Lease): Promise<"released" | "gone"> {
    const held = this.#forget(lease);
    if (held === undefined) return "gone";
    const answer = await this.#ask({ kind: "release", id: ++this.#lastId, lease: held.id });
    if (answer.kind === "failed") throw fromPlainFault(answer.fault);
    return answer.kind === "released" ? "released" : "gone";
  }

  isHeld(lease: Lease): boolean {
    const held = this.#leases.get(lease);
    return held !== undefined && processClock.monotonic() < held.heldUntil.get();
  }

  onLost(listener: LostListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #spawn(): Promise<void> {
    const { connection, bucket, ttlMs, stallLimitMs, giveUpAfterMs, prefix } = this.#options;
    const beat = this.#beat.buffer;
    const workerData: ThreadSetup = {
      ...{ connection, bucket, ttlMs, stallLimitMs, giveUpAfterMs, prefix, beat },
    };
    const thread = this.#options.spawn?.(workerData) ?? renewalThread({ workerData });
    this.#thread = thread;
    return new Promise((resolve, reject) => {
      thread.on("message", (message: FromThread) => {
        if (message.kind === "ready") {
          this.#skewMs = message.skewMs ?? 0;
          resolve();
        } else if (message.kind === "refused") {
          reject(fromPlainFault(message.fault));
          void thread.terminate();
        } else this.#receive(message);
      });
      thread.on("error", (error) => this.#died(thread, error, reject));
      thread.on("exit", () => this.#died(thread, new Error("the lease thread ended"), reject));
    });
  }

  #receive(message: Exclude<FromThread, { kind: "ready" | "refused" }>): void {
    switch (message.kind) {
      case "answer": {
        this.#waiting.get(message.id)?.resolve(message.answer);
        this.#waiting.delete(message.id);
        return;
      }
      case "lost": {
        // The answer to the claim may still be in the microtask queue: handle the loss after it.
        setImmediate(() => this.#lose(message.lease, message.why));
        return;
      }
      case "happened":
        return this.#options.runtime.announce(message.happening);
      case "stopped":
        return;
    }
  }

  /**
   * Without the thread nothing is renewed: all leases are lost now, and the next claim starts another thread.
   */
  #died(thread: Worker, error: unknown, reject: (error: unknown) => void): void {
    reject(error);
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    announceFault(this.#options.runtime, "leases", error, { code: "lease_thread_died" });
    for (const { heldUntil } of this.#leases.values()) heldUntil.set(0);
    this.#refuseWaiting(messageOf(error));
    for (const id of [...this.#byId.keys()]) this.#lose(id, "expired");
  }

  #lose(id: number, why: LossWhy): void {
    const lease = this.#byId.get(id);
    if (lease === undefined) return;
    this.#forget(lease);
    for (const listener of this.#listeners) listener(lease, why);
  }

  #forget(lease: Lease): KeptLease | undefined {
    const held = this.#leases.get(lease);
    if (held === undefined) return undefined;
    held.heldUntil.set(0);
    this.#leases.delete(lease);
    this.#byId.delete(held.id);
    return held;
  }

  async #ask(message: Exclude<ToThread, { kind: "stop" }>): Promise<Answer> {
    if (this.#beating === undefined) throw unavailable("the keeper is not running");
    if (this.#thread === undefined) await this.#spawn();
    return new Promise((resolve, reject) => {
      if (this.#thread === undefined) return reject(unavailable("the keeper was stopped"));
      this.#waiting.set(message.id, { resolve, reject });
      this.#thread.postMessage(message);
    });
  }

  /** A lease whose deadline is 0 was already reported by the thread. */
  #loseExpired(now: number): void {
    for (const [id, lease] of [...this.#byId]) {
      const heldUntil = this.#leases.get(lease)?.heldUntil.get() ?? 0;
      if (heldUntil > 0 && heldUntil <= now) this.#lose(id, "expired");
    }
  }

  #refuseWaiting(why: string): void {
    for (const { reject } of this.#waiting.values()) reject(unavailable(why));
    this.#waiting.clear();
  }

  #proveLife(): void {
    const now = processClock.monotonic();
    const stoodStill = now - this.#beat.get() > 2 * this.#beatEveryMs;
    this.#beat.set(now);
    // After a pause this thread finds expired leases before the renewal thread can report them, and before
    // most other code runs.
    if (stoodStill) this.#loseExpired(now);
    this.#beating = processClock.after(this.#beatEveryMs, () => this.#proveLife());
  }
}

/** The thread without its setup, for `startEarly`. */
export const renewalThread = (options: WorkerOptions): Worker =>
  startThread(import.meta.url, "./renewal-thread", {
    ...options,
    name: "holdfast-leases",
    // Renewals leave garbage that is dead at once: a large young generation would only make the process larger.
    resourceLimits: { maxYoungGenerationSizeMb: 4 },
  });

const unavailable = (message: string): Fault =>
  new Fault("transient", { code: "lease_thread_unavailable", message });
