/** A cart: filled by updates, looked at by queries. Run it: npx holdfast dev --app examples/cart/app.ts */
import { defineOrchestration, defineQuery, defineUpdate } from "holdfast";
import { z } from "zod";

const Item = z.object({ name: z.string(), price: z.number().nonnegative() });
type Item = z.infer<typeof Item>;

/** What is in the cart; with `{above}` only what costs more. */
export const contents = defineQuery("contents", {
  input: z.object({ above: z.number() }).optional(),
  output: z.array(Item),
});

/** Puts an item into the cart and answers how many there are. */
export const add = defineUpdate("add", { input: Item, output: z.number() });

/** Takes items until the signal `checkout`; returns what is to be paid. */
export const cart = defineOrchestration("cart", {
  output: z.number(),
  async run(ctx) {
    const items: Item[] = [];
    ctx.onQuery(contents, (only) => items.filter(({ price }) => price > (only?.above ?? -1)));
    ctx.onUpdate(add, (item) => items.push(item), {
      validate: (item) => {
        if (items.some(({ name }) => name === item.name))
          throw new Error(`${item.name} is in the cart already`);
      },
    });
    await ctx.waitForSignal("checkout");
    return items.reduce((sum, { price }) => sum + price, 0);
  },
});
