/**
 * Reads the summaries of all instances, including ended ones, which are never written again by a turn: an
 * unreadable summary is written anew by its instance (E2). Runs seldom, because it reads all of them and
 * hardly ever finds one.
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
    // Reading is enough: the register itself asks for a repair of unreadable entries.
    while (acting() && !(await entries.next()).done);
    await entries.return();
    return 0;
  }
}
