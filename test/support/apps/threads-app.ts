/** Session types that compute on several threads of one host. */
import { threadId } from "node:worker_threads";
import { call, defineSession, HoldfastError } from "holdfast";

interface State {
  /** [0] calls that have met, [1] a count, [2] states made, [3] states shut down */
  shared: Int32Array;
  own: number;
}

const memoryOf = (shared: unknown): Int32Array => {
  if (!(shared instanceof SharedArrayBuffer)) throw new Error("nothing is shared");
  return new Int32Array(shared);
};

const made = (shared: unknown): State => {
  const memory = memoryOf(shared);
  Atomics.add(memory, 2, 1);
  return { shared: memory, own: 0 };
};

const calls = {
  /** Blocks its thread until `n` calls are inside: they can only be so on n threads. */
  meet: call({
    run: ({ shared }: State, n: number) => {
      Atomics.add(shared, 0, 1);
      Atomics.notify(shared, 0);
      for (let here = Atomics.load(shared, 0); here < n; here = Atomics.load(shared, 0)) {
        if (Atomics.wait(shared, 0, here, 10_000) === "timed-out") throw new Error(`only ${here} came`);
      }
      return threadId;
    },
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
  count: call({ run: ({ shared }: State, by: number) => Atomics.add(shared, 1, by) + by }),
  look: call({ run: ({ shared }: State) => [...shared] }),
  stream: call({
    run: async (_state: State, n: number, ctx) => {
      for (let i = 0; i < n; i++) await ctx.stream.write(i);
      return n;
    },
  }),
  wait: call({
    run: (_state: State, _input: unknown, ctx) =>
      new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("aborted"))),
  }),
  events: call({ run: (_state: State, _input: unknown, ctx) => typeof ctx.session.events }),
  hang: call({
    run: (_state: State): string => {
      for (;;);
    },
  }),
  crash: call({ run: (_state: State): never => process.exit(3) }),
};

const quickPing = { pingInterval: 100, pingTimeout: 200, maxMissed: 2, killGrace: 200 } as const;

export const parallel = defineSession<State, typeof calls>("parallel", {
  isolation: "thread",
  threads: 3,
  threadSafe: true,
  host: quickPing,
  share: (_ctx, _config, bytes) => {
    const shared = new SharedArrayBuffer(16);
    new Int32Array(shared)[1] = bytes ? Number(new TextDecoder().decode(bytes)) : 0;
    return shared;
  },
  init: (ctx) => made(ctx.shared),
  calls,
  checkpoint: ({ shared }) => new TextEncoder().encode(String(Atomics.load(shared, 1))),
  restore: (ctx) => made(ctx.shared),
  shutdown: ({ shared }) => {
    Atomics.add(shared, 3, 1);
  },
});

/** Every second thread cannot make its state. */
export const halfBroken = defineSession<State, { look: typeof calls.look }>("half-broken", {
  isolation: "thread",
  threads: 2,
  threadSafe: true,
  share: () => new SharedArrayBuffer(16),
  init: (ctx) => {
    const state = made(ctx.shared);
    const here = Atomics.add(state.shared, 0, 1);
    if (here === 1) throw new HoldfastError({ code: "no_room", message: "no room for a second one" });
    return state;
  },
  calls: { look: calls.look },
});

/** As `parallel`, in one thread: `share` is asked for just the same. */
export const single = defineSession<State, { count: typeof calls.count }>("single", {
  share: () => new SharedArrayBuffer(16),
  init: (ctx) => made(ctx.shared),
  calls: { count: calls.count },
});

export const unwatched = defineSession("unwatched", {
  isolation: "thread",
  host: { ...quickPing, ping: { enabled: false } },
  init: () => null,
  calls: {
    block: call({
      run: (_state, ms: number) => {
        const until = Date.now() + ms;
        while (Date.now() < until);
        return "done";
      },
    }),
  },
});
