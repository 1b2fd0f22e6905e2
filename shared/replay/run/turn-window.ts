/**
 * The stretch of time in which one orchestration's code runs, and nothing else of this thread does.
 *
 * WINDOW-1 A window opens in a macrotask of its own, so no other microtask is waiting when it opens. While a
 *    history is replayed, nothing but the engine runs between two windows: the next one opens when the
 *    microtask queue is empty.
 * WINDOW-2 Each step resolves at most one durable result; the next step runs when the microtask queue is
 *    empty (a nextTick asked for by a microtask runs exactly then, before any I/O).
 * WINDOW-3 Outside a window no orchestration code has anything to do: code that calls the context there was
 *    resumed by something that is not durable.
 */

import { followPromises } from "./promise-graph.ts";

export interface Occupant {
  /** The instance whose code runs. */
  readonly instanceId: string;
  /** True: losers of a race are given up with the operations they wait for. */
  readonly followsPromises: boolean;
  /** True: maps and the like are recorded as `{}`, as before rule 3 (`currentRules`). */
  readonly emptiesObjects: boolean;
  /** Time of the turn, for Date and friends. */
  readonly now: number;
  readonly random: { next(): number; uuid(): string };
  /** The code did something that is not allowed in an orchestration. */
  refuse(what: string): never;
  /**
   * Resolves the next durable result that the code waits for without a new fact; returns false if there is
   * none.
   */
  resolveNext(): boolean;
  /** Set during a look: no durable operation may be issued, and nothing changed. */
  readonly looksOnly?: true;
}

let current: Occupant | undefined;
let watch: (instanceId: string | undefined) => void = () => undefined;

export const occupant = (): Occupant | undefined => current;

/**
 * The watcher gets the instance whose code is about to run, and undefined when it has stopped: only another
 * thread can notice code that never stops (T9).
 */
export function watchWindows(watcher: (instanceId: string | undefined) => void): void {
  watch = watcher;
}

/**
 * Runs `fn` of an instance outside a turn; if it never returns, it is noticed like a turn that never ends
 * (T9).
 */
export function watched<T>(instanceId: string, fn: () => T): T {
  watch(instanceId);
  try {
    return fn();
  } finally {
    watch(undefined);
  }
}

// The guards below replace the globals; the engine keeps the real ones.
const realImmediate = setImmediate;
const realNextTick = process.nextTick;
const realNow = performance.now.bind(performance);
/** A replay yields to other work after this long. */
let replayStretchMs = 5;

/** For simulations: the order of events must not depend on the speed of this machine. */
export function replayInOneStretch(): void {
  replayStretchMs = Number.POSITIVE_INFINITY;
}
/** When the macrotask of the present stretch of windows began. */
let stretchBegan = 0;
/** Its `then` is the cheapest microtask there is. */
const drained = Promise.resolve();

/** Runs `fn` as if no window were open: its result is recorded, so it may use the real world. */
export function outside<T>(fn: () => T): T {
  const code = current;
  current = undefined;
  try {
    return fn();
  } finally {
    current = code;
  }
}

/** Runs `fn` at once, between two windows, as code of this occupant. */
export function withinWindow<T>(code: Occupant, fn: () => T): T {
  const before = current;
  current = code;
  watch(code.instanceId);
  try {
    return fn();
  } finally {
    current = before;
    watch(before?.instanceId);
  }
}

/**
 * Shows the facts in order and drains the code's microtasks after each, then calls `finish`. Resolves when
 * the window is closed. `goesOn`: since the previous window only the engine has run, and it awaited nothing.
 */
export function openWindow<Fact>(
  code: Occupant,
  facts: readonly Fact[],
  show: (fact: Fact) => void,
  finish: () => void,
  goesOn: boolean,
): Promise<void> {
  return new Promise((closed, failed) => {
    let index = 0;
    let unfollow: (() => void) | undefined;
    const close = () => {
      unfollow?.();
      current = undefined;
      watch(undefined);
    };
    const step = () => {
      current = code;
      try {
        const resolved = code.resolveNext();
        if (resolved || index < facts.length) {
          if (!resolved) show(facts[index++] as Fact);
          void drained.then(afterwards);
          return;
        }
        finish();
      } catch (error) {
        close();
        return failed(error);
      }
      close();
      closed();
    };
    const afterwards = () => realNextTick(step);
    const open = () => {
      watch(code.instanceId);
      if (code.followsPromises) unfollow = followPromises();
      step();
    };
    if (goesOn && realNow() - stretchBegan < replayStretchMs) return realNextTick(open);
    realImmediate(() => {
      stretchBegan = realNow();
      open();
    });
  });
}
