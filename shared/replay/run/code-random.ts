/** The random numbers of an orchestration's code: the same on every replay. */
import { hash32, type Random, seededRandom, systemRandom, uuid } from "../../runtime/index.ts";
import type { Runner } from "./runner.ts";
import { occupant } from "./turn-window.ts";

export class CodeRandom {
  readonly #runner: Runner;
  /** Made when the code first asks for it: most code never does. */
  #seeded: Random | undefined;

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /** A number from 0 to 1. */
  next(): number {
    return this.#source.next();
  }

  uuid(): string {
    return uuid(this.#source);
  }

  /** Code that runs beside the turn (a side effect) must not use random numbers that replay will need. */
  get #source(): Random {
    if (occupant() !== this.#runner) return systemRandom;
    const { instanceId, execution } = this.#runner.state;
    this.#seeded ??= seededRandom(hash32(`${instanceId}:${execution}`));
    return this.#seeded;
  }
}
