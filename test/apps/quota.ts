/** A session type of which the whole installation holds two at a time. */
import { call, defineOrchestration, defineSession } from "holdfast";

export const scarce = defineSession("scarce", {
  maxTotal: 2,
  leaseTtl: "1s",
  init: () => ({ calls: 0 }),
  calls: { count: call({ run: (state: { calls: number }) => ++state.calls }) },
});

export const keeps = defineOrchestration("keeps", {
  async run(ctx) {
    await using session = await ctx.openSession(scarce);
    await session.count(undefined);
    await ctx.waitForSignal("end");
    return await session.count(undefined);
  },
});

export const uses = defineOrchestration("uses", {
  async run(ctx, { creationTimeout }: { creationTimeout?: string }) {
    await using session = await ctx.openSession(scarce, {
      // Its worker may be the one that is killed.
      onLost: "reclaim",
      ...(creationTimeout === undefined ? {} : { creationTimeout: creationTimeout as "1s" }),
    });
    return await session.count(undefined);
  },
});
