/**
 * A wait of code for a signal: in the queue of its name, in a scope, and with a stake in the promise it is
 * combined with. One object serves all three, because thousands of instances wait for signals for a long
 * time.
 */
import { type Schema, validate } from "../../../definitions/index.ts";
import { CancelledError } from "../../../errors/index.ts";
import { byEngine, type Stake } from "../../run/promise-graph.ts";
import type { Runner } from "../../run/runner.ts";
import type { Scope, ScopeMember } from "../scope.ts";
import type { Signal, Waiter } from "./signals.ts";

export class SignalWait implements Waiter, ScopeMember, Stake {
  readonly #runner: Runner;
  readonly #scope: Scope;
  readonly #name: string;
  readonly #schema: Schema | undefined;
  #settle: { resolve(value: unknown): void; reject(error: unknown): void } | undefined;
  /** The received signal, and how many facts had been delivered by then. */
  #got: { signal: Signal; at: number } | undefined;

  constructor(runner: Runner, scope: Scope, name: string, schema?: Schema) {
    this.#runner = runner;
    this.#scope = scope;
    this.#name = name;
    this.#schema = schema;
  }

  begin(): Promise<unknown> {
    const begin = (resolve: (value: unknown) => void, reject: (error: unknown) => void): void => {
      if (this.#scope.cancelled) return reject(new CancelledError(this.#scope.reason));
      this.#settle = { resolve, reject };
      this.#scope.join(this);
      this.#runner.signals.wait(this.#name, this);
    };
    return byEngine(() => new Promise(begin));
  }

  receive(signal: Signal): void {
    this.#got = { signal, at: this.#runner.delivered };
    const settle = this.#end();
    if (!settle) return;
    try {
      settle.resolve(
        validate(this.#schema, signal.value, "invalid_signal", `payload of signal "${this.#name}"`),
      );
    } catch (error) {
      settle.reject(error);
    }
  }

  cancel(): void {
    this.#end()?.reject(new CancelledError(this.#scope.reason));
  }

  /**
   * Without rule 1, two signals that were already there can meet in one race: the loser's signal is unread
   * again.
   */
  lose(): void {
    this.cancel();
    const got = this.#got;
    this.#got = undefined;
    const { delivered, followsPromises, signals } = this.#runner;
    if (!followsPromises && got?.at === delivered) signals.giveBack(this.#name, got.signal);
  }

  withhold(): void {
    this.#runner.signals.leave(this.#name, this);
  }

  resume(): void {
    if (this.#settle) this.#runner.signals.wait(this.#name, this);
  }

  #end() {
    const settle = this.#settle;
    this.#settle = undefined;
    if (!settle) return undefined;
    this.#runner.signals.leave(this.#name, this);
    this.#scope.leave(this);
    return settle;
  }
}
