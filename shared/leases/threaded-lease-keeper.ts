import type { Worker } from "node:worker_threads";
import type { LeaseValue } from "../../schemas/index.ts";
import { Fault } from "../errors/index.ts";
import { once, type Runtime, startThread, type Timer, within } from "../runtime/index.ts";
import {
  type ClaimOutcome,
  type Lease,
  type Leases,
  type LossWhy,
  type LostListener,
  requireTtl,
} from "./lease.ts";
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

export interface ThreadedLeaseKeeperOptions {
  connection: LeaseConnection;
  /** Full name of the bucket: `names.bucket("leases")`. */
  bucket: string;
  /** Time is always the process's own: the threads must agree on it. */
  runtime: Pick<Runtime, "announce">;
  ttlMs: number;
  /** The main loop may stand still for so long. Default: the TTL of each lease. */
  stallLimitMs?: number;
  giveUpAfterMs?: number;
  /** Where sessions are held: prefix of the subjects under which their instances are told that this process stalled. */
  prefix?: string;
  /** Starts the thread: one that has other duties too, or, in tests, one that does not behave. */
  spawn?: (workerData: ThreadSetup) => Worker;
}

interface Held {
  id: number;
  heldUntil: SharedInstant;
}

/**
 * The same as `LeaseKeeper`, behind a thread of its own (S8). The main loop proves that it turns by writing the time
 * to memory both threads see; the deadline of each lease comes back the same way, so that a process waking from a pause
 * knows what it lost before any message is read (F10).
 */
export class ThreadedLeaseKeeper implements Leases {
  readonly #options: ThreadedLeaseKeeperOptions;
  readonly #beatEveryMs: number;
  readonly #beat = new SharedInstant();
  readonly #leases = new Map<Lease, Held>();
  readonly #byId = new Map<number, Lease>();
  readonly #waiting = new Map<
    number,
    { resolve: (answer: Answer) => void; reject: (error: unknown) => void }
  >();
  readonly #listeners = new Set<LostListener>();
  #thread: Worker | undefined;
  #beating: Timer | undefined;
  #lastId = 0;

  constructor(options: ThreadedLeaseKeeperOptions) {
    this.#options = { ...options, ttlMs: requireTtl(options.ttlMs) };
    this.#beatEveryMs = Math.min(options.ttlMs, options.stallLimitMs ?? options.ttlMs, 5000) / 10;
  }

  start = once(async () => {
    this.#proveLife();
    await this.#spawn();
  });

  /** As with the plain keeper: what is still held runs out. */
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
      await within(2000, stopped); // without a server even saying goodbye can take for ever
      await thread.terminate();
    }
  });

  async claim(key: string, value: LeaseValue, ttlMs?: number): Promise<ClaimOutcome> {
    if (ttlMs !== undefined) requireTtl(ttlMs);
    const id = ++this.#lastId;
    const heldUntil = new SharedInstant();
    const answer = await this.#ask({ kind: "claim", id, key, value, ttlMs, heldUntil: heldUntil.buffer });
    switch (answer.kind) {
      case "granted": {
        const lease: Lease = Object.freeze({ key, epoch: answer.epoch, ttlMs: answer.ttlMs });
        this.#leases.set(lease, { id, heldUntil });
        this.#byId.set(id, lease);
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
    const thread = this.#options.spawn?.(workerData) ?? startRenewalThread(workerData);
    this.#thread = thread;
    return new Promise((resolve, reject) => {
      thread.on("message", (message: FromThread) => {
        if (message.kind === "ready") resolve();
        else if (message.kind === "refused") {
          reject(fromPlainFault(message.fault));
          void thread.terminate();
        } else this.#hear(message);
      });
      thread.on("error", (error) => this.#died(thread, error, reject));
      thread.on("exit", () => this.#died(thread, new Error("the lease thread ended"), reject));
    });
  }

  #hear(message: Exclude<FromThread, { kind: "ready" | "refused" }>): void {
    switch (message.kind) {
      case "answer": {
        this.#waiting.get(message.id)?.resolve(message.answer);
        this.#waiting.delete(message.id);
        return;
      }
      case "lost": {
        // The answer to the claim may still be on its way through the microtask queue: this comes after it.
        setImmediate(() => this.#lose(message.lease, message.why));
        return;
      }
      case "happened":
        return this.#options.runtime.announce(message.happening);
      case "stopped":
        return;
    }
  }

  /** Without the thread nothing is renewed: all is lost now, and the next claim starts another. */
  #died(thread: Worker, error: unknown, reject: (error: unknown) => void): void {
    reject(error);
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    const message = error instanceof Error ? error.message : String(error);
    this.#options.runtime.announce({
      kind: "fault",
      where: "leases",
      code: "lease_thread_died",
      message,
      error,
    });
    for (const { heldUntil } of this.#leases.values()) heldUntil.set(0);
    this.#refuseWaiting(message);
    for (const id of [...this.#byId.keys()]) this.#lose(id, "expired");
  }

  #lose(id: number, why: LossWhy): void {
    const lease = this.#byId.get(id);
    if (lease === undefined) return;
    this.#forget(lease);
    for (const listener of this.#listeners) listener(lease, why);
  }

  #forget(lease: Lease): Held | undefined {
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

  /** Of those at 0 the thread has said why already. */
  #loseWhatIsOver(now: number): void {
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
    // After a pause what is over is known here before the thread can say it, and before much else gets its turn.
    if (stoodStill) this.#loseWhatIsOver(now);
    this.#beating = processClock.after(this.#beatEveryMs, () => this.#proveLife());
  }
}

const startRenewalThread = (workerData: ThreadSetup): Worker =>
  startThread(import.meta.url, "./renewal-thread", { workerData, name: "holdfast-leases" });

const unavailable = (message: string): Fault =>
  new Fault("transient", { code: "lease_thread_unavailable", message });
