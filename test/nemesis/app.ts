/** One of everything, each with a result that its input alone decides, and a journal of what its code did. */
import { appendFileSync } from "node:fs";
import { call, defineActivity, defineOrchestration, defineSession, defineUpdate } from "holdfast";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function note(entry: Record<string, unknown>): void {
  const file = process.env.HOLDFAST_TEST_JOURNAL;
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

export const add = defineActivity("add", {
  async run(_ctx, { a, b, ms = 0 }: { a: number; b: number; ms?: number }) {
    if (ms > 0) await pause(ms);
    return a + b;
  },
});

interface Count {
  n: number;
  ms: number;
  /** The number of this call; it grows with each call that the code asks for. Default: `n`. */
  asked?: number;
  /** A call of a shared pool: no order is promised. */
  shared?: boolean;
}

export const counter = defineSession("counter", {
  leaseTtl: "2s",
  creationTimeout: "10m",
  init: () => ({ n: 0 }),
  calls: {
    count: call({
      async run(state, { n, ms, asked = n, shared = false }: Count, ctx) {
        const { id: sessionId, epoch } = ctx.session;
        const { instanceId, attempt } = ctx;
        note({ kind: "call", sessionId, epoch, instanceId, of: asked, attempt, ordered: !shared });
        if (ms > 0) await pause(ms);
        state.n = n;
        return n;
      },
    }),
  },
  shutdown: (_state, ctx) => note({ kind: "shutdown", sessionId: ctx.session.id, epoch: ctx.session.epoch }),
});

const patient = { onLost: "reclaim", maxInitAttempts: 50, recovery: { maxAutoRetries: 50 } } as const;

export const steps = defineOrchestration("steps", {
  async run(ctx, n: number) {
    let total = 0;
    for (let i = 0; i < n; i++) total = await ctx.run(add, { a: total, b: 1, ms: 30 });
    return total;
  },
});

export const family = defineOrchestration("family", {
  async run(ctx, n: number) {
    const [parts, child] = await Promise.all([
      Promise.all(Array.from({ length: n }, (_, i) => ctx.run(add, { a: i, b: 0, ms: 20 }))),
      ctx.child(steps, n),
      ctx.sleep(300),
    ]);
    return parts.reduce((a, b) => a + b, 0) + child;
  },
});

export const signalled = defineOrchestration("signalled", {
  async run(ctx, n: number) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += await ctx.waitForSignal<number>("tick");
    return sum;
  },
});

export const addUp = defineUpdate<number, number>("add-up");

export const updated = defineOrchestration("updated", {
  async run(ctx, n: number) {
    let sum = 0;
    let times = 0;
    ctx.onUpdate(addUp, async (by) => {
      const next = await ctx.run(add, { a: sum, b: by });
      sum = next;
      times++;
      return next;
    });
    await ctx.until(() => times === n);
    return sum;
  },
});

export const generations = defineOrchestration("generations", {
  async run(ctx, input: number | { left: number; total: number }) {
    const { left, total } = typeof input === "number" ? { left: input, total: 0 } : input;
    const next = await ctx.run(add, { a: total, b: 1 });
    await ctx.sleep(100);
    return left > 1 ? ctx.continueAsNew({ left: left - 1, total: next }) : next;
  },
});

export const sleepy = defineOrchestration("sleepy", {
  async run(ctx, n: number) {
    for (let i = 0; i < n; i++) {
      const before = ctx.now();
      await ctx.sleep(250);
      if (ctx.now() < before + 250) throw new Error("a timer fired early");
    }
    return n;
  },
});

export const held = defineOrchestration("held", {
  async run(ctx, n: number) {
    await using session = await ctx.openSession(counter, patient);
    for (let i = 1; i <= n; i++) await session.count({ n: i, ms: 80 });
    const rest = await Promise.all([1, 2, 3].map((i) => session.count({ n: n + i, ms: 10 })));
    return rest.at(-1);
  },
});

export const pooled = defineOrchestration("pooled", {
  async run(ctx, n: number) {
    await using pool = await ctx.usePool(counter, { min: 1, max: 2, linger: "2s" });
    let done = 0;
    for (let asked = 1; done < n; asked++) {
      // A call may be cut short by a loss more often than it is repeated: it is asked for again.
      const counted = await pool.count({ n: done + 1, ms: 20, asked, shared: true }).catch(() => undefined);
      if (counted !== undefined) done++;
    }
    return done;
  },
});

export const borrowed = defineOrchestration("borrowed", {
  async run(ctx, n: number) {
    let done = 0;
    for (let asked = 1; done < n; ) {
      await using mine = await ctx.usePool(counter, { sharing: "exclusive", min: 1, max: 2, linger: "2s" });
      // A loan that no worker takes in time fails for good: it is borrowed anew.
      for (let failed = 0; done < n && failed < 3; asked++) {
        const counted = await mine.count({ n: done + 1, ms: 20, asked }).catch(() => undefined);
        if (counted !== undefined) done++;
        else failed++;
      }
    }
    return done;
  },
});

export const write = defineActivity("write", { run: async (_ctx, n: number) => "x".repeat(n) });

/** Values too large for a message. */
export const large = defineOrchestration("large", {
  async run(ctx, n: number) {
    const texts = await Promise.all([1, 2].map((i) => ctx.run(write, n * i)));
    return texts.join("").length;
  },
});

/** Ends at a signal, whatever it does then. */
export const endless = defineOrchestration("endless", {
  async run(ctx, _n: number) {
    for (;;) {
      await ctx.run(add, { a: 1, b: 1, ms: 50 });
      await ctx.sleep(200);
    }
  },
});
