/** Sessions whose calls do nothing: the benchmark measures the way to the holder and back. */
import { call, defineOrchestration, defineSession, isSessionLost } from "holdfast";
import { machineMs } from "../clock.ts";

const never = new Promise<never>(() => undefined);

export const held = defineSession("held", {
  init: () => ({ calls: 0 }),
  calls: {
    stamp: call({
      run: (state, _step: number) => {
        state.calls++;
        return machineMs();
      },
    }),
    /** Runs until the session is gone. */
    hold: call({ run: (_state, _input: null) => never }),
  },
});

/**
 * `{n}` → opens a session, sets the status `open`, waits for `go`, makes n calls one after the other, returns
 * their stamps.
 */
export const stampedCalls = defineOrchestration("stamped-calls", {
  async run(ctx, { n }: { n: number }): Promise<number[]> {
    await using session = await ctx.openSession(held, { creationTimeout: "2m" });
    ctx.setStatus("open");
    await ctx.waitForSignal("go");
    const stamps: number[] = [];
    for (let step = 0; step < n; step++) stamps.push(await session.stamp(step));
    return stamps;
  },
});

/** `{n}` → opens a session and makes n calls one after the other. */
export const openedCalls = defineOrchestration("opened-calls", {
  async run(ctx, { n }: { n: number }): Promise<void> {
    await using session = await ctx.openSession(held, { creationTimeout: "2m" });
    for (let step = 0; step < n; step++) await session.stamp(step);
  },
});

/** `{n}` → opens and closes n sessions one after the other; how long each opening took. */
export const stampedOpenings = defineOrchestration("stamped-openings", {
  async run(ctx, { n }: { n: number }): Promise<number[]> {
    const openings: number[] = [];
    for (let step = 0; step < n; step++) {
      const asked = ctx.sideEffect(machineMs);
      const session = await ctx.openSession(held);
      openings.push(ctx.sideEffect(machineMs) - asked);
      await session.close();
    }
    return openings;
  },
});

/** Opens a session, reports its holder, calls into it, and notes when it learned that the session is lost. */
export const loseSession = defineOrchestration("lose-session", {
  async run(ctx, { ttlMs }: { ttlMs: number }): Promise<number> {
    const session = await ctx.openSession(held, { leaseTtl: ttlMs, creationTimeout: "1m" });
    ctx.setStatus({ workerId: session.info.workerId });
    try {
      await session.hold(null);
    } catch (error) {
      if (!isSessionLost(error)) throw error;
    }
    return ctx.sideEffect(machineMs);
  },
});

/** `{n}` → opens n sessions at once on the worker meant for it and keeps them until the signal `go`. */
export const keepSessions = defineOrchestration("keep-sessions", {
  async run(ctx, { n }: { n: number }): Promise<void> {
    const placement = { tags: ["keeper"] };
    const options = { creationTimeout: "5m", idleTimeout: 0, placement } as const;
    await Promise.all(Array.from({ length: n }, () => ctx.openSession(held, options)));
    ctx.setStatus("open");
    await ctx.waitForSignal("go");
  },
});
