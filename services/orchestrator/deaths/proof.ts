/**
 * Whether a member is dead, by asking it (D1). The server knows at once that a killed process is gone: a request to its
 * own subject is answered "nobody". A process that is paused or busy keeps its connection: a request to it is not
 * answered at all, which proves nothing. One that reconnects is "nobody" for a moment and comes back under its own id:
 * only who stays away for the whole grace is dead.
 */
import type { Bus } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Clock } from "../../../shared/runtime/index.ts";

export type Sign =
  | { kind: "alive" }
  /** It listens, and has not answered. */
  | { kind: "silent" }
  /** Nobody listens since then, monotonic; not for long enough to prove anything. */
  | { kind: "missing" }
  | { kind: "dead"; since: number }
  /** Nothing can be said: our own connection is away, or was a moment ago. */
  | { kind: "unsure" };

/** A client reconnects at once, and again every 150 to 300 ms where that fails. */
const graceMs = 200;
/** Of several servers one may have gone, and its clients look for another. */
const clusterGraceMs = 1_500;
/** After our own connection was away everybody else's may have been. */
const afterReconnectMs = 3_000;
/** Short: a question on its way to a dying process is never answered, and only the next one tells. */
const answerWithinMs = 100;
const nothing = new Uint8Array(0);

export class DeathProof {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #missingSince = new Map<string, number>();
  readonly #unwatch: () => void;
  #judgesFrom = 0;

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
    this.#unwatch = bus.onState(() => {
      this.#judgesFrom = clock.monotonic() + afterReconnectMs;
      this.#missingSince.clear();
    });
  }

  get graceMs(): number {
    return this.#bus.clustered() ? clusterGraceMs : graceMs;
  }

  isMissing(subject: string): boolean {
    return this.#missingSince.has(subject);
  }

  get anyMissing(): boolean {
    return this.#missingSince.size > 0;
  }

  forget(subject: string): void {
    this.#missingSince.delete(subject);
  }

  stop(): void {
    this.#unwatch();
  }

  /** Any answer will do, also a complaint about the question. `replaced`: the next process of its kind is there. */
  async ask(subject: string, question: Uint8Array = nothing, replaced = false): Promise<Sign> {
    const began = this.#clock.monotonic();
    if (!this.#bus.connected()) return { kind: "unsure" };
    const answer = await this.#request(subject, question);
    const now = this.#clock.monotonic();
    if (answer !== "nobody") {
      this.#missingSince.delete(subject);
      return answer === "reply" ? { kind: "alive" } : { kind: "silent" };
    }
    if (!this.#bus.connected() || began < this.#judgesFrom) return { kind: "unsure" };
    const since = this.#missingSince.get(subject) ?? began;
    this.#missingSince.set(subject, since);
    return replaced || now - since >= this.graceMs ? { kind: "dead", since } : { kind: "missing" };
  }

  async #request(subject: string, question: Uint8Array): Promise<"reply" | "nobody" | "timeout"> {
    try {
      return (await this.#bus.request(subject, question, { timeoutMs: answerWithinMs })).kind;
    } catch (error) {
      if (isFault(error)) return "timeout"; // the bus is away, or we may not ask: no proof
      throw error;
    }
  }
}
