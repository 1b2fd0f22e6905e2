/**
 * Reads the summaries of all instances, the ended ones too, which nobody writes again: what cannot be read is written
 * anew by its instance (E2). Seldom, because it is all of them and there is hardly ever one.
 */
import type { WatcherDeps } from "../deps.ts";
import type { RetentionStep } from "./step.ts";

const everySweeps = 10;

export class ReadBack implements RetentionStep {
  readonly name = "read-back";
  readonly #deps: WatcherDeps;
  #sweeps = 0;

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async run(): Promise<number> {
    if (++this.#sweeps % everySweeps !== 0) return 0;
    const { registers, acting } = this.#deps;
    const entries = registers.instances.entries();
    // To read them is all: the register itself asks for what does not fit.
    while (acting() && !(await entries.next()).done);
    await entries.return();
    return 0;
  }
}
