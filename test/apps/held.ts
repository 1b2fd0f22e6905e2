/** Everything of `durable.ts`, and sessions to be lost, moved, parked and fought for. */
import { call, defineOrchestration, defineSession } from "holdfast";
import { z } from "zod";
import { add } from "./durable.ts";
import { note } from "./journal.ts";
import { amnesia, recall } from "./remembering.ts";

export * from "./durable.ts";
export * from "./remembering.ts";

const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });

/** Counts in memory: what it returns tells whether the state is still the one that `init` made. */
export const counter = defineSession("counter", {
  init: (ctx) => {
    note("init", ctx.session.id, ctx.session.workerId, ctx.session.epoch);
    return { n: 0 };
  },
  calls: {
    count: call({
      async run(state, ms: number, ctx) {
        note("count", ctx.session.id, ctx.session.workerId, ctx.session.epoch);
        try {
          if (ms > 0) await pause(ms, ctx.signal);
        } catch (error) {
          note("aborted", ctx.session.id, ctx.session.epoch);
          throw error;
        }
        state.n++;
        return state.n;
      },
    }),
    /** Does not listen: it ends when it ends. */
    stubborn: call({
      async run(_state, ms: number, ctx) {
        note("stubborn", ctx.session.id, ctx.session.epoch);
        await pause(ms);
        note("stubborn ended", ctx.session.id, ctx.session.epoch);
        return "too late";
      },
    }),
    block: call({
      async run(_state, ms: number, ctx) {
        note("block", ctx.session.id, ctx.session.epoch);
        const until = Date.now() + ms;
        while (Date.now() < until);
        return "awake";
      },
    }),
  },
  shutdown: (_state, ctx) => note("shutdown", ctx.session.id, ctx.session.epoch),
});

/** Another model beside it. */
export const speaker = defineSession("speaker", {
  config: z.object({ greeting: z.string() }),
  init: (_ctx, config) => ({ greeting: config.greeting, said: 0 }),
  calls: {
    say: call({
      input: z.string(),
      output: z.string(),
      async run(state, name) {
        state.said++;
        return `${state.greeting}, ${name} (${state.said})`;
      },
    }),
  },
});

export const counted = defineOrchestration("counted", {
  async run(ctx, { n, ms = 0 }: { n: number; ms?: number }) {
    await using session = await ctx.openSession(counter);
    let value = 0;
    for (let i = 0; i < n; i++) value = await session.count(ms);
    return value;
  },
});

export const twoModels = defineOrchestration("two-models", {
  async run(ctx, { n }: { n: number }) {
    await using one = await ctx.openSession(counter);
    await using other = await ctx.openSession(speaker, { config: { greeting: "hello" } });
    const counts: number[] = [];
    const words: string[] = [];
    for (let i = 0; i < n; i++) {
      const [count, said] = await Promise.all([one.count(5), other.say(`n${i}`)]);
      counts.push(count);
      words.push(said);
    }
    return { counts, words, sessions: [one.info.state, other.info.state] };
  },
});

/** The session is opened anew in each execution, and is always the same one. */
export const carried = defineOrchestration("carried", {
  async run(ctx, { left }: { left: number }) {
    const session = await ctx.openSession(counter);
    const value = await session.count(0);
    if (left > 1) return ctx.continueAsNew({ left: left - 1 });
    return { value, id: session.id, execution: ctx.execution };
  },
});

interface Policy {
  onLost?: "fail" | "reclaim";
  ttl?: "1s" | "2s" | "3s" | "15s";
  /** Of the first call, which something interrupts. */
  ms: number;
  maxAutoRetries?: number;
}

/** A long call, then a short one; what the loss of a session does to them depends on the policy. */
export const interrupted = defineOrchestration("interrupted", {
  async run(ctx, { onLost = "fail", ttl = "2s", ms, maxAutoRetries = 3 }: Policy) {
    const session = await ctx.openSession(counter, { onLost, leaseTtl: ttl, recovery: { maxAutoRetries } });
    const first = session.info;
    await session.count(0);
    const outcome = await session.count(ms).catch((error) => ({
      name: error.name,
      code: error.code,
      reason: error.reason,
      epoch: error.epoch,
      workerId: error.workerId,
      sessionId: error.sessionId,
    }));
    const next = await session.count(0).catch((error) => error.code);
    return { first, outcome, next, last: session.info };
  },
});

/** Waits between its calls for a signal. */
export const stepwise = defineOrchestration("stepwise", {
  async run(ctx, { calls, ttl = "2s", onLost = "reclaim" }: { calls: number } & Partial<Policy>) {
    const session = await ctx.openSession(counter, { onLost, leaseTtl: ttl });
    const seen: unknown[] = [];
    for (let i = 0; i < calls; i++) {
      const value = await session.count(0).catch((error) => `${error.code} ${error.reason}`);
      seen.push(value);
      ctx.setStatus(seen.length);
      await ctx.waitForSignal("next");
    }
    return { seen, info: session.info };
  },
});

export const hopelessSession = defineOrchestration("hopeless-session", {
  async run(ctx) {
    const session = await ctx.openSession({ recovery: { rebuild: { activity: amnesia } } });
    const outcome = await session
      .run(recall, 0)
      .catch((error) => ({ code: error.code, text: error.message }));
    const later = await session.run(recall, 0).catch((error) => error.code);
    return { outcome, later };
  },
});

/** Closes under a running call, as `how` says what kind of call. */
export const closer = defineOrchestration("closer", {
  async run(ctx, { how, ms }: { how: "count" | "stubborn"; ms: number }) {
    const session = await ctx.openSession(counter);
    const running = session[how](ms).catch((error) => error.code);
    await ctx.waitForSignal("close");
    await session.close();
    await session.close();
    const after = await session.count(0).catch((error) => error.code);
    const outcome = await running;
    await ctx.waitForSignal("end");
    return { outcome, after, state: session.info.state };
  },
});

/** Holds a session until a signal ends it. */
export const keeper = defineOrchestration("keeper", {
  async run(ctx, options: { creationTimeout?: "1s" | "2s" | "60s"; id?: string; executionTimeout?: "3s" }) {
    const { creationTimeout = "60s", executionTimeout, id } = options;
    const session = await ctx.openSession(counter, {
      creationTimeout,
      ...(id === undefined ? {} : { id }),
      ...(executionTimeout === undefined ? {} : { executionTimeout }),
    });
    ctx.setStatus("open");
    await session.count(0);
    const word = await ctx.waitForSignal<string>("end");
    const last = await session.count(0).catch((error) => ({ code: error.code, reason: error.reason }));
    return { word, last, workerId: session.info.workerId };
  },
});

/** Timers, signals, joins, activities and calls woven together; the result depends on the order of all of them. */
export const woven = defineOrchestration("woven", {
  async run(ctx, { rounds }: { rounds: number }) {
    const trace: string[] = [];
    await using one = await ctx.openSession(counter);
    await using two = await ctx.openSession(speaker, { config: { greeting: "hey" } });
    for (let i = 0; i < rounds; i++) {
      const winner = await Promise.race([
        ctx.sleep(5_000).then(() => "timer"),
        one.count(5).then((n) => `count ${n}`),
      ]);
      trace.push(winner);
      const [said, sum] = await Promise.all([two.say(`r${i}`), ctx.run(add, { a: i, b: 1 }), ctx.sleep(10)]);
      trace.push(said, String(sum), ctx.uuid().slice(0, 4));
      trace.push(await ctx.waitForSignal<string>("word"));
    }
    return trace;
  },
});

const outcomeOf = (error: { name: string; code: string; message: string; reason?: string }) => ({
  name: error.name,
  code: error.code,
  message: error.message,
  reason: error.reason,
});

/** Known to orchestrations, served by no worker of this application (see `held-others.ts`). */
const unserved = defineSession("unserved", {
  init: () => ({}),
  calls: { ping: call({ run: () => "pong" }) },
});

/** Opens the requested session and returns the outcome. */
export const opens = defineOrchestration("opens", {
  async run(
    ctx,
    { what, ...options }: { what: "counter" | "speaker" | "unserved" | "bare" } & Record<string, unknown>,
  ) {
    const types = { counter, speaker, unserved, bare: undefined };
    const type = types[what];
    try {
      const session = await (type
        ? ctx.openSession(type, options as never)
        : ctx.openSession(options as never));
      return { opened: session.id, info: session.info, token: session.token() };
    } catch (error) {
      return outcomeOf(error as never);
    }
  },
});

export const idles = defineOrchestration("idles", {
  async run(ctx) {
    const session = await ctx.openSession(counter, { idleTimeout: "1s" });
    const before = [await session.count(0), await session.count(1500)];
    const first = session.info.epoch;
    await ctx.waitForSignal("again");
    const parked = session.info.state;
    const after = await session.count(0);
    return { before, parked, after, newEpoch: (session.info.epoch ?? 0) > (first ?? 0) };
  },
});

export const lazy = defineOrchestration("lazy", {
  async run(ctx) {
    const session = await ctx.openSession(counter, { lazy: true });
    const before = session.info.state;
    await ctx.waitForSignal("go");
    const value = await session.count(0);
    return { before, value, after: session.info.state };
  },
});

/** Two openings of one id are one session. */
export const twice = defineOrchestration("twice", {
  async run(ctx, id: string) {
    const [one, other] = await Promise.all([
      ctx.openSession(counter, { id }),
      ctx.openSession(counter, { id }),
    ]);
    return [
      await one.count(0),
      await other.count(0),
      await (await ctx.openSession(counter, { id })).count(0),
    ];
  },
});

/** Goes back to the same resource with a token. */
export const returns = defineOrchestration("returns", {
  async run(ctx, tags: string[]) {
    const first = await ctx.openSession(counter, { placement: { tags } });
    const token = first.token();
    const { resourceId } = first.info;
    await first.close();
    await ctx.waitForSignal("return");
    try {
      const again = await ctx.recreateSession(token, counter, { creationTimeout: "20s" });
      return { resourceId, again: again.info.resourceId, value: await again.count(0) };
    } catch (error) {
      return { resourceId, ...outcomeOf(error as never) };
    }
  },
});

export const guest = defineOrchestration("guest", {
  async run(ctx, id: string) {
    const session = ctx.grantedSession(id, counter);
    const value = await session.count(0);
    await session.close(); // not its own: nothing happens
    return { value, next: await session.count(0) };
  },
});

export const host = defineOrchestration("host", {
  async run(ctx, { grant }: { grant: boolean }) {
    await using session = await ctx.openSession(counter);
    const mine = await session.count(0);
    const options = grant ? { grant: [session] } : {};
    const theirs = await ctx.child(guest, session.id, options).catch(outcomeOf);
    return { mine, theirs, after: await session.count(0) };
  },
});

/** Calls one after the other; with `waits` the second and later ones begin at a signal. */
export const working = defineOrchestration("working", {
  async run(ctx, options: { calls: number; ms: number; onLost?: "fail" | "reclaim"; waits?: boolean }) {
    const { calls, ms, onLost = "fail", waits = false } = options;
    await using session = await ctx.openSession(counter, { onLost, creationTimeout: "2m" });
    const seen: unknown[] = [];
    for (let i = 0; i < calls; i++) {
      if (waits && i === 1) await ctx.waitForSignal("go");
      seen.push(await session.count(ms).catch(outcomeOf));
    }
    return { seen, info: session.info };
  },
});

/** Many sessions at once, held until a signal ends them; each is used twice. */
export const crowd = defineOrchestration("crowd", {
  async run(ctx, { n, ttl }: { n: number; ttl: "5s" | "15s" }) {
    const options = { onLost: "reclaim", leaseTtl: ttl, creationTimeout: "4m" } as const;
    const sessions = await Promise.all(Array.from({ length: n }, () => ctx.openSession(counter, options)));
    await Promise.all(sessions.map((session) => session.count(0)));
    ctx.setStatus("open");
    await ctx.waitForSignal("again");
    await Promise.all(sessions.map((session) => session.count(0)));
    return sessions.map(({ info }) => ({ id: info.id, epoch: info.epoch, workerId: info.workerId }));
  },
});

/** Comes to the same result whatever is lost on the way: the caller knows how far it is. */
export const resilient = defineOrchestration("resilient", {
  async run(ctx, { n, ms }: { n: number; ms: number }) {
    await using session = await ctx.openSession(counter, {
      onLost: "reclaim",
      leaseTtl: "2s",
      creationTimeout: "5m",
      maxInitAttempts: 50,
      recovery: { maxAutoRetries: 50 },
    });
    let value = 0;
    for (let i = 0; i < n; i++) {
      await session.count(ms);
      value++;
    }
    return value;
  },
});
