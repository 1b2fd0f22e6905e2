/**
 * Conditions that code waits for (`ctx.until`). They are checked after every fact, when the code has run as
 * far as it can. One condition is fulfilled at a time, oldest first, and the code runs on before the next is
 * checked.
 */
import { CancelledError, HoldfastError } from "../../errors/index.ts";
import { byEngine } from "../run/promise-graph.ts";
import { look } from "../run/read-only-look.ts";
import type { Runner } from "../run/runner.ts";
import type { Scope, ScopeMember } from "./scope.ts";

export class Conditions {
  readonly #waiting = new Set<Condition>();

  add(condition: Condition): void {
    this.#waiting.add(condition);
  }

  remove(condition: Condition): void {
    this.#waiting.delete(condition);
  }

  get awaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** Returns false if no condition is fulfilled. */
  resolveNext(): boolean {
    for (const condition of this.#waiting) if (condition.look()) return true;
    return false;
  }
}

export class Condition implements ScopeMember {
  readonly #runner: Runner;
  readonly #scope: Scope;
  readonly #holds: () => unknown;
  #settle: { resolve(): void; reject(error: unknown): void } | undefined;

  constructor(runner: Runner, scope: Scope, holds: () => unknown) {
    this.#runner = runner;
    this.#scope = scope;
    this.#holds = holds;
  }

  begin(): Promise<void> {
    const begin = (resolve: () => void, reject: (error: unknown) => void): void => {
      if (this.#scope.cancelled) return reject(new CancelledError(this.#scope.reason));
      this.#settle = { resolve, reject };
      this.#scope.join(this);
      this.#runner.conditions.add(this);
    };
    return byEngine(() => new Promise<void>(begin));
  }

  /** Returns true if the condition is settled now: it holds, or its check failed. */
  look(): boolean {
    const { instanceId, now } = this.#runner;
    const seen = look(instanceId, now, "the condition of ctx.until", this.#holds);
    if (seen.kind === "seen" && !seen.value) return false;
    const settle = this.#end();
    if (seen.kind === "seen") settle?.resolve();
    else if (seen.kind === "threw") settle?.reject(seen.error);
    else settle?.reject(new HoldfastError({ code: "condition_broken", message: seen.message }));
    return true;
  }

  cancel(): void {
    this.#end()?.reject(new CancelledError(this.#scope.reason));
  }

  lose(): void {
    this.cancel();
  }

  #end() {
    const settle = this.#settle;
    this.#settle = undefined;
    if (!settle) return undefined;
    this.#runner.conditions.remove(this);
    this.#scope.leave(this);
    return settle;
  }
}
