/**
 * The stretch of time in which one orchestration's code runs, and nothing else of this thread does.
 *
 * WINDOW-1 A window opens in a macrotask of its own, so no other microtask is waiting when it opens.
 * WINDOW-2 Each step resolves at most one durable result; the next step runs when the microtask queue is empty
 *    (a nextTick asked for by a microtask runs exactly then, before any I/O).
 * WINDOW-3 Outside a window no orchestration code has anything to do: whatever calls the context there was resumed by
 *    something that is not durable.
 */

import { followPromises } from "./promise-graph.ts";

export interface Occupant {
  /** Whose code it is. */
  readonly instanceId: string;
  /** Losers of a race are given up with what they wait for. */
  readonly followsPromises: boolean;
  /** Time of the turn, for Date and friends. */
  readonly now: number;
  random(): number;
  uuid(): string;
  /** The code did what it must not do in an orchestration. */
  refuse(what: string): never;
  /** Resolves the next durable result the code waits for without a new fact; false if there is none. */
  resolveNext(): boolean;
  /** Set while the code is only looked at: nothing durable may be asked for, and nothing changed. */
  readonly looksOnly?: true;
}

let current: Occupant | undefined;
let watch: (instanceId: string | undefined) => void = () => undefined;

export const occupant = (): Occupant | undefined => current;

/** Told whose code is about to run, and when it has stopped: code that never stops is seen from outside only (T9). */
export function watchWindows(watcher: (instanceId: string | undefined) => void): void {
  watch = watcher;
}

/** Runs `fn` of an instance, which is no turn; if it never comes back, it is seen from outside as a turn is (T9). */
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
/** Its `then` is the cheapest microtask there is. */
const drained = Promise.resolve();

/** Runs `fn` as if no window were open: what it does is recorded, so it may see the real world. */
export function outside<T>(fn: () => T): T {
  const who = current;
  current = undefined;
  try {
    return fn();
  } finally {
    current = who;
  }
}

/** Runs `fn` at once, between two windows, as code of `who`. */
export function withinWindow<T>(who: Occupant, fn: () => T): T {
  const before = current;
  current = who;
  watch(who.instanceId);
  try {
    return fn();
  } finally {
    current = before;
    watch(before?.instanceId);
  }
}

/**
 * Shows the facts in order, each with the code's microtasks drained behind it, then lets `finish` look at what came of
 * it. Resolves when the window is closed.
 */
export function openWindow<Fact>(
  who: Occupant,
  facts: readonly Fact[],
  show: (fact: Fact) => void,
  finish: () => void,
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
      current = who;
      try {
        const resolved = who.resolveNext();
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
    realImmediate(() => {
      watch(who.instanceId);
      if (who.followsPromises) unfollow = followPromises();
      step();
    });
  });
}
