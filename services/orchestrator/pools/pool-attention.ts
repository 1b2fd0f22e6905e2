/** Shared by the keepers of pools: waits for the next signal, and publishes the keeper's status. */
import { poolSignal } from "../../../schemas/index.ts";
import type { OrchestrationContext } from "../../../shared/definitions/index.ts";

export class PoolAttention {
  readonly #ctx: OrchestrationContext;
  #lastStatus = "";
  #wake: () => void = () => undefined;

  constructor(ctx: OrchestrationContext) {
    this.#ctx = ctx;
  }

  /** Called after a change that no signal reports. */
  wake(): void {
    this.#wake();
  }

  /**
   * Resolves with the next signal, or with undefined after `silenceMs` or a `wake`. Without `silenceMs` only
   * a signal counts.
   */
  next(silenceMs: number | undefined): Promise<unknown> {
    const signal = this.#ctx.waitForSignal(poolSignal);
    if (silenceMs === undefined) return signal;
    const changed = new Promise<undefined>((resolve) => {
      this.#wake = () => resolve(undefined);
    });
    return Promise.race([signal, changed, this.#ctx.sleep(silenceMs)]);
  }

  /** Publishes the status if it changed. */
  publishStatus(status: Record<string, unknown>): void {
    const text = JSON.stringify(status);
    if (text === this.#lastStatus) return;
    this.#lastStatus = text;
    this.#ctx.setStatus(status);
  }
}
