/**
 * Tells a passing fault from one that lasts for a single instance, for example because the stream of its
 * history has lost its leader. Such an instance is set aside like one whose turn can never succeed (T9).
 * While the bus itself is away no instance is set aside: every turn fails then, the feed has to wait, and all
 * instances would be shown as parked.
 *
 * So time alone does not decide. The bus must have answered before the turn was tried and again after it
 * failed; with only one of the two, every instance whose turn failed while the bus came back would be set
 * aside.
 */
import type { EngineDeps } from "../engine-deps.ts";

/** A stream that elects another leader is back sooner. */
const lastsAfterMs = 10_000;

export class LastingFault {
  readonly #deps: Pick<EngineDeps, "registers" | "runtime">;
  readonly #instanceId: string;
  readonly #since: number;
  #busAnswered = false;

  /** Constructed at the first failure. */
  constructor(deps: Pick<EngineDeps, "registers" | "runtime">, instanceId: string) {
    this.#deps = deps;
    this.#instanceId = instanceId;
    this.#since = deps.runtime.clock.monotonic();
  }

  /** Called after each failure. */
  async lasts(): Promise<boolean> {
    const answeredBefore = this.#busAnswered;
    this.#busAnswered = await this.#busAnswers();
    const forMs = this.#deps.runtime.clock.monotonic() - this.#since;
    return forMs >= lastsAfterMs && answeredBefore && this.#busAnswered;
  }

  async #busAnswers(): Promise<boolean> {
    try {
      await this.#deps.registers.instances.get(this.#instanceId, { leader: true });
      return true;
    } catch {
      return false; // the first failure was already announced
    }
  }
}
