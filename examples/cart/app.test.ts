/** How the cart is tested. Run it: npx vitest run examples/cart */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("what was added is paid, whoever dies meanwhile", async () => {
  await using env = await testEnvironment({ app });
  await env.everyFaultPoint(async (each) => {
    const cart = await each.client.start(app.cart);
    await cart.update(app.add, { name: "tea", price: 4 });
    await each.skip("7d");
    await cart.update(app.add, { name: "cup", price: 9 });
    expect(await cart.query(app.contents, { above: 5 })).toEqual([{ name: "cup", price: 9 }]);
    await cart.signal("checkout");
    expect(await cart.result()).toBe(13);
  });
});

test("the same thing is not added twice", async () => {
  await using env = await testEnvironment({ app });
  const cart = await env.client.start(app.cart);
  await cart.update(app.add, { name: "tea", price: 4 });
  await expect(cart.update(app.add, { name: "tea", price: 4 })).rejects.toThrow("in the cart already");
});
