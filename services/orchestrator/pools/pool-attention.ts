/** What the keepers of pools share besides users and members: they wait for what comes next, and say how things stand. */
import { poolSignal } from "../../../schemas/index.ts";
import type { OrchestrationContext } from "../../../shared/definitions/index.ts";

export class PoolAttention {
  readonly #ctx: OrchestrationContext;
  #said = "";
  #wake: () => void = () => undefined;

  constructor(ctx: OrchestrationContext) {
    this.#ctx = ctx;
  }

  /** Something changed that no signal tells. */
  wake(): void {
    this.#wake();
  }

  /** What is said next; undefined when it is time to look. Without `silenceMs` there is nothing to look after. */
  next(silenceMs: number | undefined): Promise<unknown> {
    const said = this.#ctx.waitForSignal(poolSignal);
    if (silenceMs === undefined) return said;
    const changed = new Promise<undefined>((resolve) => {
      this.#wake = () => resolve(undefined);
    });
    return Promise.race([said, changed, this.#ctx.sleep(silenceMs)]);
  }

  /** To people, where it is news. */
  tell(status: Record<string, unknown>): void {
    const text = JSON.stringify(status);
    if (text === this.#said) return;
    this.#said = text;
    this.#ctx.setStatus(status);
  }
}
