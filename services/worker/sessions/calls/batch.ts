/**
 * Calls that came together and run as one. Each call gets its own result or error. If the batch as a whole
 * throws, its calls run again one by one, so that one bad input does not fail the others.
 */

import { HostedFailure, type Item } from "../../hosts/index.ts";
import { type Aborting, LazyAbort } from "../../lazy-abort.ts";
import { SerializedJson } from "../../serialized-json.ts";

type RunItems = (inputs: unknown[], signal: Aborting) => Promise<Item[]>;

interface Member {
  input: unknown;
  signal: Aborting;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

export class Batch {
  readonly #run: RunItems;
  readonly #onRan: (size: number) => void;
  readonly #members: Member[] = [];
  #expected: number;

  constructor(size: number, run: RunItems, onRan: (size: number) => void) {
    this.#expected = size;
    this.#run = run;
    this.#onRan = onRan;
  }

  /** The batch runs when every expected member has joined or left. */
  join(input: unknown, signal: Aborting): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#members.push({ input, signal, resolve, reject });
      this.#runIfComplete();
    });
  }

  /** A member ended before it could join, for example because its input cannot be read. */
  leave(): void {
    this.#expected--;
    this.#runIfComplete();
  }

  #runIfComplete(): void {
    if (this.#members.length === this.#expected && this.#expected > 0) void this.#runAll(this.#members);
  }

  async #runAll(members: readonly Member[]): Promise<void> {
    try {
      const items = await this.#run(
        members.map((member) => member.input),
        allAborted(members.map((member) => member.signal)),
      );
      this.#onRan(members.length);
      for (const [i, member] of members.entries()) settle(member, items[i]);
    } catch (error) {
      const [only, ...others] = members;
      if (!only || others.length === 0) only?.reject(error);
      else for (const member of members) await this.#runAlone(member);
    }
  }

  async #runAlone(member: Member): Promise<void> {
    try {
      const [item] = await this.#run([member.input], member.signal);
      this.#onRan(1);
      settle(member, item);
    } catch (error) {
      member.reject(error);
    }
  }
}

function settle(member: Member, item: Item | undefined): void {
  try {
    member.resolve(resultOf(item));
  } catch (error) {
    member.reject(error);
  }
}

export function resultOf(item: Item | undefined): unknown {
  if (item?.ok) return "json" in item ? new SerializedJson(item.json) : item.value;
  throw item ? new HostedFailure(item.error) : new Error("no result for this item");
}

/**
 * Aborts only when every member has aborted: cancelling one call must not end the run the others wait for.
 */
function allAborted(signals: readonly Aborting[]): Aborting {
  const [first, ...others] = signals;
  if (first && others.length === 0) return first;
  const all = new LazyAbort();
  const check = () => {
    if (signals.every((signal) => signal.aborted)) all.abort(first?.reason);
  };
  for (const signal of signals) signal.addEventListener("abort", check, { once: true });
  check();
  return all;
}
