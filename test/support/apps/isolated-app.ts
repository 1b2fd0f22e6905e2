/** Session types for tests of hosts; their calls return what they did. */
import { spawn } from "node:child_process";
import { isMainThread, threadId } from "node:worker_threads";
import { call, defineSession, type HostOptions, NonRetryableError } from "holdfast";

interface State {
  id: string;
  count: number;
  /** The config that `init` got. */
  threads?: number;
}

const calls = () => ({
  where: call({
    run: (_state: State) => ({ pid: process.pid, threadId, isMainThread, omp: process.env.OMP_NUM_THREADS }),
  }),
  threads: call({ run: (state: State) => state.threads }),
  environment: call({
    run: (_state: State, names: string[]) =>
      Object.fromEntries(names.map((name) => [name, process.env[name]])),
  }),
  /** Stores, reads back, lists and deletes under a name; what it reads back is undefined if it was not there. */
  keep: call({
    run: async (_state: State, [name, data]: [string, string], { session: { blobs } }) => {
      const { bytes } = await blobs.put(name, Buffer.from(data));
      const found = Buffer.from((await blobs.get(name)) ?? []).toString();
      const names = (await blobs.list()).map((one) => one.name);
      return { bytes, found, names, deleted: [await blobs.delete(name), await blobs.delete(name)] };
    },
  }),
  count: call({ run: (state: State, by: number) => (state.count += by) }),
  crash: call({
    run: (_state: State, code: number): Promise<never> => {
      process.stderr.write("the model is on fire\n");
      setTimeout(() => process.exit(code), 20);
      return new Promise(() => undefined);
    },
  }),
  throwLater: call({
    run: (_state: State): Promise<never> => {
      setTimeout(() => {
        throw new Error("nobody catches this");
      }, 10);
      return new Promise(() => undefined);
    },
  }),
  block: call({
    run: (_state: State, ms: number) => {
      const until = Date.now() + ms;
      while (Date.now() < until);
      return "done";
    },
  }),
  fail: call({
    run: (_state: State): string => {
      throw new NonRetryableError("as asked", { code: "asked_for", details: { a: 1 } });
    },
  }),
  /** `using` in a loop: each round has errors of its own. */
  retried: call({
    run: async (_state: State) => {
      for (let round = 1; ; round++) {
        try {
          await using _one = { [Symbol.asyncDispose]: async () => undefined };
          if (round < 3) throw new Error(`round ${round}`);
          return round;
        } catch (error) {
          if (round > 5) return String(error);
        }
      }
    },
  }),
  weird: call({ run: (_state: State) => ({ fn: () => 1 }) }),
  stream: call({
    run: async (_state: State, n: number, ctx) => {
      for (let i = 0; i < n; i++) await ctx.stream.write({ i });
      ctx.heartbeat({ at: n });
      ctx.log.info("streamed", { n });
      return n;
    },
  }),
  wait: call({
    run: (_state: State, _input: unknown, ctx) =>
      new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("aborted"))),
  }),
  next: call({
    run: async (_state: State, _input: unknown, ctx) => {
      for await (const event of ctx.session.events) return event;
      return undefined;
    },
  }),
  /** A process of its own that ignores SIGTERM; returns its pid. */
  child: call({
    run: (_state: State) => {
      const child = spawn("/bin/sh", ["-c", "trap '' TERM; while :; do sleep 1; done"], { stdio: "ignore" });
      return child.pid;
    },
  }),
  giveUp: call({
    run: (_state: State, reason: string, ctx) => {
      ctx.session.abort(reason);
      return "asked";
    },
  }),
});

const state = (id: string): State => ({ id, count: 0 });
const quickPing = { pingInterval: 100, pingTimeout: 200, maxMissed: 2, killGrace: 200 } as const;

export const threaded = defineSession<State, ReturnType<typeof calls>>("threaded", {
  isolation: "thread",
  host: { sessionsPerHost: 2 },
  init: (ctx) => {
    ctx.reportModel({ name: "tiny", device: "cpu", loadMs: 1 });
    return { ...state(ctx.session.id), threads: ctx.threads };
  },
  calls: calls(),
});

export const hangingThread = defineSession<State, ReturnType<typeof calls>>("hanging-thread", {
  isolation: "thread",
  host: quickPing,
  init: (ctx) => state(ctx.session.id),
  calls: calls(),
});

export const processed = defineSession<State, ReturnType<typeof calls>>("processed", {
  isolation: "process",
  host: { killGrace: 300 },
  init: (ctx) => ({ ...state(ctx.session.id), threads: ctx.threads }),
  calls: calls(),
});

export const hangingProcess = defineSession<State, ReturnType<typeof calls>>("hanging-process", {
  isolation: "process",
  host: quickPing,
  init: (ctx) => state(ctx.session.id),
  calls: calls(),
});

const encode = (value: State): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const decode = (bytes: Uint8Array): State => JSON.parse(new TextDecoder().decode(bytes));

export const recycledByMove = defineSession<State, ReturnType<typeof calls>>("recycled-by-move", {
  isolation: "process",
  host: { maxCalls: 3, killGrace: 300 },
  init: (ctx) => state(ctx.session.id),
  calls: calls(),
  checkpoint: (value) => encode(value),
  restore: (_ctx, _config, bytes) => decode(bytes),
});

export const recycledByLoss = defineSession<State, ReturnType<typeof calls>>("recycled-by-loss", {
  isolation: "thread",
  host: { maxCalls: 3, sessionsPerHost: 1 },
  init: (ctx) => state(ctx.session.id),
  calls: calls(),
});

const recycled = (name: string, host: HostOptions) =>
  defineSession<State, ReturnType<typeof calls>>(name, {
    isolation: "process",
    host: { killGrace: 300, ...host },
    init: (ctx) => state(ctx.session.id),
    calls: calls(),
    checkpoint: (value) => encode(value),
    restore: (_ctx, _config, bytes) => decode(bytes),
  });
export const recycledByAge = recycled("recycled-by-age", { maxAge: 1_000 });
export const recycledBySize = recycled("recycled-by-size", { maxRssMb: 1, pingInterval: 50 });

export const saved = defineSession<State, ReturnType<typeof calls>>("saved", {
  checkpointEvery: 2,
  init: (ctx) => state(ctx.session.id),
  calls: calls(),
  checkpoint: (value) => encode(value),
  restore: (_ctx, _config, bytes) => decode(bytes),
});
