/** The programs that wrote the histories beside this file, as they were then. Replayed for ever: never changed. */
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../../shared/definitions/index.ts";

export function programs() {
  const pause = async (_ms: number) => undefined;
  const add = defineActivity("add", {
    async run(_ctx, { a, b }: { a: number; b: number }) {
      await pause(30);
      return a + b;
    },
  });
  const flake = defineActivity("flake", {
    retry: { maxAttempts: 20, initialDelay: "50ms", maxDelay: "1s" },
    async run(_ctx, n: number) {
      await pause(20);
      return n + 1;
    },
  });
  const slow = defineActivity("slow", {
    async run() {
      return "slow";
    },
  });
  const counter = defineSession("counter", {
    init: async () => {
      await pause(50);
      return { n: 0 };
    },
    calls: {
      // The state may be new after a loss: the caller says where it is.
      count: call({
        async run(state, from: number) {
          await pause(20);
          state.n = from + 1;
          return state.n;
        },
      }),
    },
  });

  // Notices a user that comes while another is there; a new state after a loss knows no users.
  const desk = defineSession("desk", {
    idleTimeout: "5s",
    leaseTtl: "3s",
    creationTimeout: "10m",
    init: async (): Promise<{ by: string | undefined }> => {
      await pause(50);
      return { by: undefined };
    },
    calls: {
      write: call({
        async run(state, { by, first }: { by: string; first: boolean }) {
          if (first || state.by === undefined) state.by = by;
          await pause(60);
          if (state.by !== by) throw new Error(`${state.by} took the desk of ${by}`);
          return by;
        },
      }),
    },
  });
  const writer = defineOrchestration("writer", {
    async run(ctx) {
      await using mine = await ctx.usePool(desk, {
        ...{ sharing: "exclusive", min: 1, max: 2, linger: "2s" },
      });
      let written = 0;
      for (let i = 0; i < 3; i++) {
        // Interrupted more often than a call is repeated: a desk has no order of its own, so it is asked again.
        for (let done = false; !done; ) {
          done = await mine.write({ by: ctx.instanceId, first: i === 0 }).then(
            () => true,
            (error) => {
              if (error.code !== "session_lost") throw error;
              return false;
            },
          );
        }
        written++;
      }
      return written;
    },
  });

  const sequence = defineOrchestration("sequence", {
    async run(ctx, n: number) {
      let total = 0;
      for (let i = 0; i < n; i++) total = await ctx.run(add, { a: total, b: 1 });
      return total;
    },
  });
  return {
    add,
    flake,
    slow,
    counter,
    desk,
    writer,
    sequence,
    fanOut: defineOrchestration("fan-out", {
      async run(ctx, n: number) {
        const parts = await Promise.all(Array.from({ length: n }, (_, i) => ctx.run(add, { a: i, b: 0 })));
        return parts.reduce((sum, part) => sum + part, 0);
      },
    }),
    flaky: defineOrchestration("flaky", {
      async run(ctx, n: number) {
        let value = 0;
        for (let i = 0; i < n; i++) value = await ctx.run(flake, value);
        return value;
      },
    }),
    timers: defineOrchestration("timers", {
      async run(ctx, n: number) {
        for (let i = 0; i < n; i++) {
          const before = ctx.now();
          await ctx.sleep(50 + i * 400);
          if (ctx.now() < before + 50 + i * 400) throw new Error("a timer fired early");
        }
        return n;
      },
    }),
    signals: defineOrchestration("signals", {
      async run(ctx, n: number) {
        const heard: number[] = [];
        for (let i = 0; i < n; i++) heard.push(await ctx.waitForSignal<number>("tick"));
        return heard;
      },
    }),
    family: defineOrchestration("family", {
      async run(ctx, n: number) {
        const [a, b] = await Promise.all([ctx.child(sequence, n), ctx.child(sequence, n)]);
        return a + b;
      },
    }),
    generations: defineOrchestration("generations", {
      async run(ctx, input: number | { left: number; total: number }) {
        const { left, total } = typeof input === "number" ? { left: input, total: 0 } : input;
        const next = await ctx.run(add, { a: total, b: 1 });
        if (left <= 1) return next;
        return ctx.continueAsNew({ left: left - 1, total: next });
      },
    }),
    naps: defineOrchestration("naps", {
      async run(ctx, left: number) {
        await ctx.sleep(300);
        return left <= 1 ? "rested" : ctx.continueAsNew(left - 1);
      },
    }),
    raced: defineOrchestration("raced", {
      async run(ctx) {
        return await Promise.race([ctx.run(slow, null), ctx.sleep(100).then(() => "fast")]);
      },
    }),
    counted: defineOrchestration("counted", {
      async run(ctx, n: number) {
        await using session = await ctx.openSession(counter, {
          onLost: "reclaim",
          leaseTtl: "3s",
          creationTimeout: "10m",
          maxInitAttempts: 50,
          recovery: { maxAutoRetries: 50 },
        });
        let value = 0;
        for (let i = 0; i < n; i++) value = (await session.count(value)) as number;
        return value;
      },
    }),
    pooled: defineOrchestration("pooled", {
      async run(ctx, n: number) {
        await using pool = await ctx.usePool(counter, { min: 1, max: 3, linger: "2s" });
        let value = 0;
        for (let i = 0; i < n; i++) value = (await pool.count(value)) as number;
        const parts = await Promise.all(Array.from({ length: n }, (_, i) => pool.count(i)));
        if (parts.some((part, i) => part !== i + 1)) throw new Error(`mixed up: ${parts.join()}`);
        return value;
      },
    }),
    borrowed: defineOrchestration("borrowed", {
      async run(ctx, n: number) {
        const written = await Promise.all(Array.from({ length: n }, () => ctx.child(writer, null)));
        // The last one sees the pool through, so that its history tells which it was.
        await using mine = await ctx.usePool(desk, {
          ...{ sharing: "exclusive", min: 1, max: 2, linger: "2s" },
        });
        await mine.write({ by: ctx.instanceId, first: true }).catch(() => undefined);
        return written.reduce((sum, each) => sum + each, 0);
      },
    }),
    twins: defineOrchestration("twins", {
      async run(ctx, n: number) {
        const options = {
          onLost: "reclaim" as const,
          leaseTtl: "3s" as const,
          creationTimeout: "10m" as const,
          maxInitAttempts: 50,
          recovery: { maxAutoRetries: 50 },
        };
        const one = async () => {
          await using session = await ctx.openSession(counter, options);
          let value = 0;
          for (let i = 0; i < n; i++) value = (await session.count(value)) as number;
          return value;
        };
        const [a, b] = await Promise.all([one(), one()]);
        return a + b;
      },
    }),
  };
}
