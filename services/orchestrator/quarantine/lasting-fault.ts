/**
 * Faults that pass, and one instance for which they do not: the stream of its history has lost its leader, say. Such an
 * instance is set aside like one whose turn can never succeed (T9). While the bus itself is away nobody is: everything
 * fails then, the feed is to wait, and all of it would be shown as sick.
 *
 * So time alone does not tell. The bus must have answered before the turn was tried and again after it failed; with one
 * of the two, everybody whose turn failed while the bus came back would be taken for sick.
 */
import type { EngineDeps } from "../engine-deps.ts";

/** A stream that gets another leader is back sooner. */
const lastsAfterMs = 10_000;

export class LastingFault {
  readonly #deps: Pick<EngineDeps, "registers" | "runtime">;
  readonly #instanceId: string;
  readonly #since: number;
  #busAnswered = false;

  /** Made with the first failure. */
  constructor(deps: Pick<EngineDeps, "registers" | "runtime">, instanceId: string) {
    this.#deps = deps;
    this.#instanceId = instanceId;
    this.#since = deps.runtime.clock.monotonic();
  }

  /** Asked after each failure. */
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
      return false; // of what failed first people were told
    }
  }
}
