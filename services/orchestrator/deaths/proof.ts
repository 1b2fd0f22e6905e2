/**
 * Finds out whether a member is dead by asking it (D1). The server knows at once that a killed process is
 * gone: it answers a request to that process's own subject with "no responders". A process that is paused or
 * busy keeps its connection: a request to it gets no answer at all, which proves nothing. A process that
 * reconnects has no responder for a moment and comes back under its own id: only a member that stays away for
 * the whole grace period is dead.
 */
import type { Bus } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Clock } from "../../../shared/runtime/index.ts";

type Sign =
  | { kind: "alive" }
  /** The member listens but has not answered. */
  | { kind: "silent" }
  /** No process listens on the member's subject, but not yet for long enough to prove its death. */
  | { kind: "missing" }
  | { kind: "dead"; since: number }
  /** No conclusion is possible: this process's own connection is down, or was a moment ago. */
  | { kind: "unsure" };

/** A client reconnects at once, and then every 150 to 300 ms until it succeeds. */
const graceMs = 200;
/** In a cluster one server may have gone, and its clients are looking for another. */
const clusterGraceMs = 1_500;
/** When this process's connection was down, the connections of all other processes may have been down too. */
const afterReconnectMs = 3_000;
/**
 * Short, because a request on its way to a dying process is never answered; only the next request shows that
 * it is dead.
 */
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

  get anyMissing(): boolean {
    return this.#missingSince.size > 0;
  }

  forget(subject: string): void {
    this.#missingSince.delete(subject);
  }

  stop(): void {
    this.#unwatch();
  }

  /**
   * Any answer proves life, even an error about the question. `replaced`: the member's successor process is
   * already registered.
   */
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
      if (isFault(error)) return "timeout"; // the bus is away, or this process may not ask: no proof
      throw error;
    }
  }
}
