/** A cart that is looked at while it is filled. Run it: npx holdfast dev --app examples/cart/app.ts */
import { defineOrchestration, defineQuery } from "holdfast";
import { z } from "zod";

const Item = z.object({ name: z.string(), price: z.number().nonnegative() });
type Item = z.infer<typeof Item>;

/** What is in the cart; with `{above}` only what costs more. */
export const contents = defineQuery("contents", {
  input: z.object({ above: z.number() }).optional(),
  output: z.array(Item),
});

/** Takes items by the signal `add` until the signal `checkout`; returns what is to be paid. */
export const cart = defineOrchestration("cart", {
  output: z.number(),
  async run(ctx) {
    const items: Item[] = [];
    ctx.onQuery(contents, (only) => items.filter(({ price }) => price > (only?.above ?? -1)));
    const adding = ctx.scope(async (inner) => {
      for (;;) items.push(Item.parse(await inner.waitForSignal("add")));
    });
    await ctx.waitForSignal("checkout");
    adding.cancel();
    return items.reduce((sum, { price }) => sum + price, 0);
  },
});
