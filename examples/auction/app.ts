/**
 * An auction: bids are signals, a condition ends it, and whoever does not pay in time loses to the next. Run it:
 * npx holdfast dev --app examples/auction/app.ts
 */
import { type Duration, defineActivity, defineOrchestration, defineSignal, TimeoutError } from "holdfast";
import { z } from "zod";

const Bid = z.object({ by: z.string(), amount: z.number().positive() });
type Bid = z.infer<typeof Bid>;

export const bid = defineSignal("bid", { payload: Bid });

/** Stands for a bank, which may take its time. */
export const collect = defineActivity("collect", {
  input: Bid,
  run: (_ctx, { by, amount }) => `${by}: ${amount}`,
});

/** Sells to the highest bidder that pays: when somebody bids `buyNow`, or when the time is over. */
export const auction = defineOrchestration("auction", {
  input: z.object({ buyNow: z.number(), lasts: z.string().default("1h") }),
  async run(ctx, { buyNow, lasts }) {
    const bids: Bid[] = [];
    const best = () => bids.at(-1)?.amount ?? 0;
    const listen = async () => {
      for await (const one of ctx.signals(bid)) if (one.amount > best()) bids.push(one);
    };
    try {
      await Promise.race([listen(), ctx.until(() => best() >= buyNow, { timeout: lasts as Duration })]);
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
    }
    const late = ctx.signals(bid).drain().length;
    for (const highest of bids.reverse()) {
      const paid = ctx.timeout("1d", (inner) => inner.run(collect, highest));
      const receipt = await paid.catch((error: unknown) => {
        if (!(error instanceof TimeoutError)) throw error;
      });
      if (receipt !== undefined) return { receipt, late };
    }
    return { receipt: null, late };
  },
});
