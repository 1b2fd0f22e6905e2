/** Every way to write a race between a signal and a timer. Each program collects five signals named "n". */
import { defineOrchestration, type OrchestrationContext } from "../../shared/definitions/index.ts";

type Round = (ctx: OrchestrationContext) => Promise<unknown>;

const tick = "tick";
const pause = "100ms";

const next = async (ctx: OrchestrationContext): Promise<unknown> => {
  const value = await ctx.waitForSignal("n");
  return value;
};
const patient = async (ctx: OrchestrationContext): Promise<unknown> => {
  const value = await next(ctx);
  return await Promise.resolve(value);
};
const pauseOf = async (ctx: OrchestrationContext): Promise<string> => {
  await ctx.sleep(pause);
  return tick;
};
async function* signals(ctx: OrchestrationContext): AsyncGenerator<unknown> {
  yield await ctx.waitForSignal("n");
}

export const rounds: Record<string, Round> = {
  plain: async (ctx) => (await Promise.race([ctx.sleep(pause), ctx.waitForSignal("n")])) ?? tick,
  then: (ctx) =>
    Promise.race([ctx.sleep(pause).then(() => tick), ctx.waitForSignal("n").then((value) => value)]),
  "then, twice, with catch and finally": (ctx) =>
    Promise.race([
      ctx
        .sleep(pause)
        .then(() => tick)
        .finally(() => undefined),
      ctx
        .waitForSignal("n")
        .then((value) => value)
        .catch((error) => Promise.reject(error))
        .finally(() => undefined),
    ]),
  "async helper": (ctx) => Promise.race([pauseOf(ctx), next(ctx)]),
  "helper of a helper": (ctx) => Promise.race([pauseOf(ctx), patient(ctx)]),
  "async function that does not await": (ctx) =>
    Promise.race([(async () => pauseOf(ctx))(), (async () => ctx.waitForSignal("n").then((v) => v))()]),
  "then that returns a promise": (ctx) =>
    Promise.race([
      Promise.resolve().then(() => pauseOf(ctx)),
      Promise.resolve().then(() => ctx.waitForSignal("n")),
    ]),
  "nested race": (ctx) =>
    Promise.race([pauseOf(ctx), Promise.race([next(ctx), ctx.waitForSignal("never").then((v) => v)])]),
  any: (ctx) => Promise.any([pauseOf(ctx), next(ctx), Promise.reject(new Error("no matter"))]),
  "all in a race": async (ctx) => {
    const won = await Promise.race([pauseOf(ctx), Promise.all([next(ctx), Promise.resolve(1)])]);
    return Array.isArray(won) ? won[0] : won;
  },
  "allSettled in a race": async (ctx) => {
    const won = await Promise.race([pauseOf(ctx), Promise.allSettled([next(ctx)])]);
    return Array.isArray(won) && won[0]?.status === "fulfilled" ? won[0].value : won;
  },
  "awaited in a helper": async (ctx) => {
    const both = async () => await Promise.race([pauseOf(ctx), next(ctx)]);
    const helper = async () => {
      const won = await both();
      return won;
    };
    return await helper();
  },
  "a promise made by hand beside it": async (ctx) => {
    let resolve: (value: unknown) => void = () => undefined;
    const made = new Promise((done) => {
      resolve = done;
    });
    const won = await Promise.race([pauseOf(ctx), next(ctx), made]);
    resolve(0);
    await made;
    return won;
  },
  "async generator": (ctx) =>
    Promise.race([
      pauseOf(ctx),
      signals(ctx)
        .next()
        .then(({ value }) => value),
    ]),
  "iterator over signals": (ctx) => {
    const iterator = ctx.signals("n")[Symbol.asyncIterator]();
    return Promise.race([pauseOf(ctx), iterator.next().then(({ value }) => value)]);
  },
  "loser that watches failures": (ctx) => {
    const wait = next(ctx);
    wait.catch(() => undefined);
    return Promise.race([pauseOf(ctx), wait]);
  },
  "loser that tries again": (ctx) => {
    const stubborn = async () => {
      for (;;) {
        try {
          return await ctx.waitForSignal("n");
        } catch {
          // It has lost, and does not know it.
        }
      }
    };
    return Promise.race([pauseOf(ctx), stubborn()]);
  },
};

/** Five signals, however many pauses lie between them. */
export const collecting = (round: Round) =>
  defineOrchestration("collect", {
    async run(ctx) {
      const seen: unknown[] = [];
      while (seen.length < 5) {
        const value = await round(ctx);
        if (value !== tick) seen.push(value);
      }
      return seen;
    },
  });

/** As `collecting`, but begins anew after every pause. */
export const renewing = (round: Round) =>
  defineOrchestration("collect", {
    async run(ctx, before: unknown[]) {
      const seen = [...before];
      while (seen.length < 5) {
        const value = await round(ctx);
        if (value === tick) ctx.continueAsNew(seen);
        seen.push(value);
      }
      return seen;
    },
  });
