/**
 * Waits until owners confirm that they have recorded results. An owner confirms many results in one message,
 * a little later. Meanwhile the worker goes on, and only remembers the unconfirmed results.
 *
 * A result on its way to an owner that died is never confirmed. So the worker asks an owner that is slow to
 * confirm whether it is there: if no process listens, its results go through the inbox at once. That needs no
 * proof of its death (D1), because a result may come both ways (LANE-3).
 */
import { LaneRecordings } from "../../../schemas/index.ts";
import { decode, type Stoppable } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { once, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";

interface UnrecordedResult {
  readonly owner: string;
  readonly since: number;
  resolve(recorded: boolean): void;
}

/**
 * Long enough for a turn that waits for its append; a result not confirmed by then goes through the inbox.
 */
const recordedMs = 2_000;
/** Interval at which owners are asked about reports at least this old; also how long an owner may take to answer. */
const sweepMs = 100;
/** Any instance id will do: an empty report is answered with `elsewhere`. */
const anyInstance = "probe";
const nothing = new Uint8Array(0);

export class Recordings implements Service {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity">;
  /** A symbol stands for a result that was sent by itself. */
  readonly #waiting = new Map<string | symbol, UnrecordedResult>();
  #subscription: Stoppable | undefined;
  #timer: Timer | undefined;

  constructor(deps: Pick<WorkerDeps, "bus" | "names" | "runtime" | "identity">) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    const subject = names.laneOfRecordings(identity.workerId);
    this.#subscription = await bus.subscribe(subject, {}, ({ body }) => {
      const recordings = decode(LaneRecordings, body);
      if (recordings.kind === "ok") for (const key of recordings.value.keys) this.#settle(key, true);
    });
  }

  stop = once(async () => {
    this.#timer?.cancel();
    await this.#subscription?.stop();
    for (const key of [...this.#waiting.keys()]) this.#settle(key, false);
  });

  /** Resolves to false if the owner did not confirm in time, or is gone. */
  wait(key: string | symbol, owner: string): Promise<boolean> {
    const { clock } = this.#deps.runtime;
    this.#settle(key, false);
    return new Promise((resolve) => {
      this.#waiting.set(key, { owner, since: clock.monotonic(), resolve });
      this.#timer ??= clock.after(sweepMs, () => this.#sweep());
    });
  }

  /**
   * The same for a result in a message of its own: `confirmed` becomes true when the owner answers that it is
   * recorded.
   */
  async waitFor(confirmed: Promise<boolean>, owner: string): Promise<boolean> {
    const key = Symbol(owner);
    try {
      return await Promise.race([confirmed, this.wait(key, owner)]);
    } finally {
      this.#waiting.delete(key);
    }
  }

  #settle(key: string | symbol, recorded: boolean): void {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    waiting?.resolve(recorded);
  }

  #sweep(): void {
    const { clock } = this.#deps.runtime;
    const now = clock.monotonic();
    const slow = new Set<string>();
    // The map is in the order in which waiting began.
    for (const [key, { owner, since }] of this.#waiting) {
      if (now - since < sweepMs) break;
      if (now - since >= recordedMs) this.#settle(key, false);
      else slow.add(owner);
    }
    for (const owner of slow) void this.#ask(owner, now);
    this.#timer = this.#waiting.size > 0 ? clock.after(sweepMs, () => this.#sweep()) : undefined;
  }

  async #ask(owner: string, now: number): Promise<void> {
    const { bus, names } = this.#deps;
    try {
      const subject = names.laneOfOwner(owner, anyInstance, "report");
      const { kind } = await bus.request(subject, nothing, { timeoutMs: sweepMs });
      if (kind !== "nobody") return;
    } catch (error) {
      if (isFault(error)) return; // the bus is away
      throw error;
    }
    for (const [key, waiting] of this.#waiting)
      if (waiting.owner === owner && waiting.since <= now) this.#settle(key, false);
  }
}
