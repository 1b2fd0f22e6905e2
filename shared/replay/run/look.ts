/**
 * Calls a function of the code between two turns, to see something and change nothing (Q1).
 *
 * A look is refused whatever a turn may do: commands, waiting, randomness. Code that tried, awaited or threw may have
 * changed variables of its own before it was stopped, so its copy is `spoiled`: whoever holds it builds it again from
 * history. Changes of plain variables that show in no answer cannot be seen; the first look at each function is taken
 * twice and must show the same.
 */
import { HoldfastError } from "../../errors/index.ts";
import { type Occupant, withinWindow } from "./turn-window.ts";

export type Look =
  | { kind: "seen"; value: unknown }
  | { kind: "refused"; why: "awaits" | "changes"; message: string }
  | { kind: "threw"; error: unknown };

/** Runs `fn` as code that may only look. `what` names it in messages. */
export function look(instanceId: string, now: number, what: string, fn: () => unknown): Look {
  const looker = new Looker(instanceId, now, what);
  let seen: Look;
  try {
    seen = { kind: "seen", value: withinWindow(looker, fn) };
  } catch (error) {
    seen = { kind: "threw", error };
  }
  const awaits = seen.kind === "seen" && isThenable(seen.value);
  // Nobody waits for it, and its failure must not end the process.
  if (seen.kind === "seen" && isThenable(seen.value)) seen.value.then(undefined, () => undefined);
  if (looker.refused !== undefined) return { kind: "refused", why: "changes", message: looker.refused };
  if (!awaits) return seen;
  return { kind: "refused", why: "awaits", message: `${what} returned a promise: it must not await` };
}

class Looker implements Occupant {
  readonly looksOnly = true;
  readonly followsPromises = false;
  readonly instanceId: string;
  readonly now: number;
  readonly #what: string;
  /** The first thing that was refused, also where the code caught the error. */
  refused: string | undefined;

  constructor(instanceId: string, now: number, what: string) {
    this.instanceId = instanceId;
    this.now = now;
    this.#what = what;
  }

  random(): number {
    return this.refuse("a random number");
  }

  uuid(): string {
    return this.refuse("a random id");
  }

  resolveNext(): boolean {
    return false;
  }

  refuse(what: string): never {
    this.refused ??= `${this.#what} asked for ${what}: it may look at the instance and change nothing`;
    throw new HoldfastError({ code: "look_only", message: this.refused });
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
