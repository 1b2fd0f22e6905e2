/**
 * Source design S1, "Worker Sessions (Stateful, Movable, App-Managed)": the engine keeps identity and lease of a session,
 * the application keeps the state. An activity that misses it says `session_lost`; the recovery policy rebuilds it once
 * and repeats the activity.
 */
import { type ActivityContext, defineActivity, defineOrchestration, SessionLostError } from "holdfast";
import { z } from "zod";

export const journal: string[] = [];

/** The memory of a worker. A restarted one has another epoch, and finds nothing. */
export const states = new Map<string, { model: string }>();

function sessionOf(ctx: ActivityContext) {
  if (!ctx.session) throw new Error("session-bound activity");
  const { id, epoch } = ctx.session;
  return { id, key: `${id}/${epoch}` };
}

export const infer = defineActivity("Infer", {
  input: z.string(),
  run: async (ctx, request) => {
    const { key } = sessionOf(ctx);
    const state = states.get(key);
    if (!state) throw new SessionLostError("state missing on attached worker");
    journal.push(`infer ${request}`);
    if (request === "slow")
      await new Promise((_resolve, reject) =>
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)),
      );
    return `${state.model}: ${request}`;
  },
});

/** `rebuild_activity`. Idempotent: it may run again on another worker. */
export const rebuildSession = defineActivity("RebuildSession", {
  input: z.string(),
  run: (ctx, model) => {
    const { id, key } = sessionOf(ctx);
    journal.push(`rebuild ${id}`);
    // "Rebuild policy loop": it misses the state itself, and is not rebuilt for that.
    if (model === "hopeless") throw new SessionLostError("nothing to rebuild from");
    states.set(key, { model });
  },
});

/** `SessionRecoveryPolicy`; one rebuild serves all that missed the state (`singleflight_per_session`). */
const recovery = (model: string) => ({
  rebuild: { activity: rebuildSession, input: model },
  maxAutoRetries: 1,
});

/** The sample: two activities of one session, joined. */
export const inferBoth = defineOrchestration("s1-infer-both", {
  input: z.object({ a: z.string(), b: z.string(), model: z.string().default("m1") }),
  async run(ctx, { a, b, model }) {
    const session = await ctx.openSession({ recovery: recovery(model) });
    const both = await Promise.all([session.run(infer, a), session.run(infer, b)]);
    await session.close();
    return both;
  },
});

/** "Session survives ContinueAsNew": its handle is found again by its place, and the worker still has the state. */
export const overExecutions = defineOrchestration("s1-over-executions", {
  input: z.object({ left: z.int(), seen: z.array(z.string()).default([]) }),
  async run(ctx, { left, seen }): Promise<string[]> {
    const session = await ctx.openSession({ id: `${ctx.instanceId}-warm`, recovery: recovery("m1") });
    const now = [...seen, await session.run(infer, `e${ctx.execution}`)];
    if (left > 0) return ctx.continueAsNew({ left: left - 1, seen: now });
    await session.close();
    return now;
  },
});

/** "EndSession races with in-flight work": it is cancelled, and what it says later is ignored. */
export const endsWhileRunning = defineOrchestration("s1-ends-while-running", {
  async run(ctx) {
    const session = await ctx.openSession({ recovery: recovery("m1") });
    await session.run(infer, "first");
    const running = session.run(infer, "slow").then(
      () => "finished",
      (error: unknown) => (error instanceof Error ? error.name : "?"),
    );
    await ctx.sleep("1s");
    await session.close();
    return await running;
  },
});

/** "Timers / external events / async joins": whatever brings the next turn about, the session is the same. */
export const mixed = defineOrchestration("s1-mixed", {
  async run(ctx) {
    await using session = await ctx.openSession({ recovery: recovery("m1") });
    const all = [await session.run(infer, "start")];
    await ctx.sleep("1h");
    all.push(await session.run(infer, "after the timer"));
    const word = await ctx.waitForSignal<string>("word");
    all.push(...(await Promise.all([session.run(infer, word), session.run(infer, "beside it")])));
    return all;
  },
});
