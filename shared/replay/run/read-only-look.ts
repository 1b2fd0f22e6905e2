/**
 * Calls a function of the code between two turns, to read something and change nothing (Q1).
 *
 * A look may do nothing that a turn may do: no commands, no waiting, no randomness. Code that tried, awaited
 * or threw may have changed variables of its own before it was stopped, so its copy is `spoiled`: its owner
 * builds it again from history. A change of plain variables that no answer shows cannot be detected; the
 * first look at each function runs twice and must give the same result.
 */
import { HoldfastError } from "../../errors/index.ts";
import { type Occupant, withinWindow } from "./turn-window.ts";

export type Look =
  | { kind: "seen"; value: unknown }
  | { kind: "refused"; why: "awaits" | "changes"; message: string }
  | { kind: "threw"; error: unknown };

/** Runs `fn` as code that may only look. `what` names the function in messages. */
export function look(instanceId: string, now: number, what: string, fn: () => unknown): Look {
  const looker = new Looker(instanceId, now, what);
  let seen: Look;
  try {
    seen = { kind: "seen", value: withinWindow(looker, fn) };
  } catch (error) {
    seen = { kind: "threw", error };
  }
  const awaits = seen.kind === "seen" && isThenable(seen.value);
  // No code awaits the promise, and its rejection must not end the process.
  if (seen.kind === "seen" && isThenable(seen.value)) seen.value.then(undefined, () => undefined);
  if (looker.refused !== undefined) return { kind: "refused", why: "changes", message: looker.refused };
  if (!awaits) return seen;
  return { kind: "refused", why: "awaits", message: `${what} returned a promise: it must not await` };
}

class Looker implements Occupant {
  readonly looksOnly = true;
  readonly followsPromises = false;
  readonly emptiesObjects = false;
  readonly instanceId: string;
  readonly now: number;
  readonly #what: string;
  readonly random = {
    next: () => this.refuse("a random number"),
    uuid: () => this.refuse("a random id"),
  };
  /** The first refused operation, even if the code caught the error. */
  refused: string | undefined;

  constructor(instanceId: string, now: number, what: string) {
    this.instanceId = instanceId;
    this.now = now;
    this.#what = what;
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
