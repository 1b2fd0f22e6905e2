/**
 * Sessions in processes and threads of their own: the benchmark measures the way there and back, or parallel
 * computing.
 */
import { call, defineOrchestration, defineSession } from "holdfast";
import { machineMs } from "../clock.ts";

export const nodeHost = defineSession("node-host", {
  isolation: "process",
  init: () => null,
  calls: { stamp: call({ run: (_state, _step: number) => machineMs() }) },
});

export const pythonHost = defineSession("python-host", {
  isolation: "process",
  command: ["python3", new URL("./stamp.py", import.meta.url)],
  calls: { stamp: call<number, number>() },
});

/** Does a fixed amount of work, instead of waiting for the clock: two of these on one core take twice as long. */
const compute = (ms: number): number => {
  let sum = 0;
  for (let i = 0; i < ms * loopsPerMs; i++) sum += Math.sqrt(i);
  return sum;
};
let loopsPerMs = 10_000;
/** The best of many short rounds, once per thread: the speed of an undisturbed thread. */
const calibrate = (): void => {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 50; round++) {
    const at = performance.now();
    compute(5);
    best = Math.min(best, performance.now() - at);
  }
  loopsPerMs *= 5 / best;
};

const computing = (name: string, threads: number) =>
  defineSession(name, {
    isolation: "thread",
    threads,
    threadSafe: true,
    init: calibrate,
    calls: { compute: call({ run: (_state, ms: number) => compute(ms) }) },
  });
export const oneThread = computing("one-thread", 1);
export const twoThreads = computing("two-threads", 2);

const hosted = { "node-host": nodeHost, "python-host": pythonHost };

/** `{type, n}` → n calls one after the other into a host of its own; their stamps. */
export const hostedCalls = defineOrchestration("hosted-calls", {
  async run(ctx, { type, n }: { type: keyof typeof hosted; n: number }): Promise<number[]> {
    await using session = await ctx.openSession(hosted[type], { creationTimeout: "1m" });
    const stamps: number[] = [];
    for (let step = 0; step < n; step++) stamps.push(await session.stamp(step));
    return stamps;
  },
});

/** `{n, ms}` → n calls of so much computing at once, on one thread and on two; how long each took. */
export const computeAtOnce = defineOrchestration("compute-at-once", {
  async run(ctx, { n, ms }: { n: number; ms: number }): Promise<{ oneMs: number; twoMs: number }> {
    const took = async (type: typeof oneThread | typeof twoThreads): Promise<number> => {
      await using session = await ctx.openSession(type, { creationTimeout: "1m" });
      await session.compute(1);
      const from = ctx.sideEffect(machineMs);
      await Promise.all(Array.from({ length: n }, () => session.compute(ms)));
      return ctx.sideEffect(machineMs) - from;
    };
    return { oneMs: await took(oneThread), twoMs: await took(twoThreads) };
  },
});
