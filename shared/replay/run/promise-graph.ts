/**
 * Follows which promise of an orchestration waits for which while its code runs. So the operation that a
 * loser of a race waited for can be given up with it, however the code is written (`then`, async functions,
 * helpers of helpers).
 *
 * PROMISE-1 A promise waits for at most one other: the one `then` was called on, the one its async function
 *    awaits, or the one it was resolved with.
 * PROMISE-2 A promise is given up when everything that waited for it has lost. A handler of failures alone
 *    (`p.catch(…)`) does not keep it, unless its own result is waited for.
 * PROMISE-3 A promise that has lost and waits again (a helper that caught its cancellation) gets no more
 *    signals; its other work goes on, so that it can clean up. If living code waits for it again, it gets
 *    signals again.
 *
 * V8 reports every new promise and the one it is made from; for `await` that is the awaited one. It does not
 *    report which function awaits: that is the innermost async function on the stack. Where more than one may be
 *    there it is found by the depth of the stack, which costs more than all the rest of a turn's code.
 */
import { promiseHooks } from "node:v8";
import { privateSlot } from "./private-slot.ts";

/** The operation behind a promise of the engine's own. */
export interface Stake {
  /** Cancels the operation if it is still open: no code can use its result. */
  lose(): void;
  /** As `lose`, for an operation that a loser began after it had lost: only signals are withheld. */
  withhold?(): void;
  /** Undoes `withhold`. */
  resume?(): void;
}

interface PromiseNode {
  waitsFor: Promise<unknown> | undefined;
  /** How many promises wait for it and have not lost. */
  waiting: number;
  lost: boolean;
  /** Made by `then`, and its handler has yet to run. */
  unhandled: boolean;
  /** Handles failures only. */
  passive: boolean;
  /** Never loses. */
  kept: boolean;
  stake: Stake | undefined;
}

const nodes = privateSlot<PromiseNode>();
/** The async function that goes on with each of the promises V8 makes for an `await`. */
const awaiting = privateSlot<Promise<unknown>>();

function nodeOf(promise: Promise<unknown>): PromiseNode {
  const known = nodes.get(promise);
  if (known) return known;
  const node: PromiseNode = {
    waitsFor: undefined,
    waiting: 0,
    lost: false,
    unhandled: false,
    passive: false,
    kept: false,
    stake: undefined,
  };
  nodes.set(promise, node);
  return node;
}

export const isPromise = (value: unknown): value is Promise<unknown> => value instanceof Promise;

export function setStake(promise: Promise<unknown>, stake: Stake): void {
  nodeOf(promise).stake = stake;
}

/** The promise never loses, whatever it is part of. */
export function keep<P extends Promise<unknown>>(promise: P): P {
  nodeOf(promise).kept = true;
  return promise;
}

/** One more promise waits for it from now on. */
export function hold(promise: Promise<unknown>): void {
  const node = nodeOf(promise);
  node.waiting++;
  if (node.lost) {
    node.lost = false;
    if (node.stake) node.stake.resume?.();
    else if (node.waitsFor) hold(node.waitsFor);
  } else if (node.waiting === 1 && node.passive && node.waitsFor) {
    hold(node.waitsFor);
  }
}

/** A promise that waited for it has lost. When the last one loses, it loses too (PROMISE-2). */
export function release(promise: Promise<unknown>, how: "lose" | "withhold" = "lose"): void {
  const node = nodeOf(promise);
  if (node.waiting > 0) node.waiting--;
  if (node.waiting > 0 || node.lost || node.kept) return;
  node.lost = true;
  if (node.stake) node.stake[how]?.();
  else if (node.waitsFor) release(node.waitsFor, how);
}

function link(
  waiter: Promise<unknown>,
  to: Promise<unknown>,
  passive: boolean,
  late: "lose" | "withhold",
): void {
  const node = nodeOf(waiter);
  node.waitsFor = to;
  node.passive = passive;
  if (node.lost) {
    if (nodeOf(to).waiting === 0) release(to, late);
  } else if (!passive || node.waiting > 0) hold(to);
}

/**
 * Async functions that may be running, outermost first; functions that began deeper than the present one have
 * returned.
 */
let running: { promise: Promise<unknown>; depth: number }[] = [];
/** The async function that was resumed. */
let resumed: Promise<unknown> | undefined;
/** True while code runs that no promise here represents, such as an async function of the engine. */
let untracked = false;
/** A promise resolved with another one, whose `then` is called next. */
let adopting: Promise<unknown> | undefined;
let following = false;
let engine = 0;

/** Promises made by the engine are not counted as the code's. */
export function byEngine<T>(fn: () => T): T {
  engine++;
  try {
    return fn();
  } finally {
    engine--;
  }
}

/** The engine waits for what the code returned, without a function of its own that would have to be followed. */
export function waitFor(
  returned: unknown,
  onValue: (value: unknown) => void,
  onError: (error: unknown) => void,
): void {
  byEngine(() => {
    const promise = Promise.resolve(returned);
    if (following) hold(promise);
    promise.then(onValue, onError);
  });
}

const hooks = {
  init(promise: Promise<unknown>, parent: Promise<unknown> | undefined): void {
    if (engine > 0) return;
    // A single candidate needs no depth to be identified.
    const candidates = running.length + (resumed || untracked ? 1 : 0);
    const depth = candidates > (parent ? 1 : 0) ? stackDepth() : 0;
    if (parent) return awaited(promise, parent, depth);
    returned(depth - 1);
    running.push({ promise, depth });
  },
  before(promise: Promise<unknown>): void {
    settle();
    resumed = awaiting.get(promise);
    if (resumed) {
      nodeOf(resumed).waitsFor = undefined;
      return;
    }
    const node = nodes.get(promise);
    if (node?.unhandled) node.unhandled = false;
    else {
      adopting = promise;
      untracked = true;
    }
  },
  after: settle,
};

function settle(): void {
  resumed = undefined;
  adopting = undefined;
  untracked = false;
  if (running.length > 0) running = [];
}

/** Forgets functions that began deeper on the stack than the running one. */
function returned(depth: number): void {
  while ((running.at(-1)?.depth ?? -1) > depth) running.pop();
}

function awaited(continuation: Promise<unknown>, promise: Promise<unknown>, depth: number): void {
  returned(depth);
  const waiter = running.pop()?.promise ?? resumed;
  if (!waiter) return;
  awaiting.set(continuation, waiter);
  link(waiter, promise, false, "withhold");
}

/** Number of stack frames of the running code, without the functions that await it. */
function stackDepth(): number {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = Number.POSITIVE_INFINITY;
  let depth = 0;
  Error.prepareStackTrace = (_error, frames) => {
    for (const frame of frames) if (!isAsyncFrame(frame)) depth++;
  };
  try {
    const here: { stack?: unknown } = {};
    Error.captureStackTrace(here, stackDepth);
    void here.stack;
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
  return depth;
}

const isAsyncFrame = (frame: NodeJS.CallSite): boolean =>
  "isAsync" in frame && typeof frame.isAsync === "function" && frame.isAsync() === true;

/** Intercepts every `then` of the code; `catch` and `finally` call it. */
export function installPromiseGraph(): void {
  const real = Promise.prototype.then;
  function then(this: Promise<unknown>, ...handlers: [onValue?: unknown, onError?: unknown]): unknown {
    if (!following || engine > 0) return Reflect.apply(real, this, handlers);
    const made: unknown = byEngine(() => Reflect.apply(real, this, handlers));
    const adopter = adopting;
    adopting = undefined;
    if (adopter) link(adopter, this, false, "lose");
    else if (isPromise(made)) {
      link(made, this, typeof handlers[0] !== "function", "lose");
      nodeOf(made).unhandled = true;
    }
    return made;
  }
  Object.defineProperty(then, "length", { value: 2 });
  // biome-ignore lint/suspicious/noThenProperty: it is the one of the language that is replaced.
  Object.defineProperty(Promise.prototype, "then", { value: then, writable: true, configurable: true });
}

/** Follows the code's promises until the returned function is called. */
export function followPromises(): () => void {
  settle();
  following = true;
  const stop = promiseHooks.createHook(hooks);
  return () => {
    stop();
    following = false;
    settle();
  };
}
