/** Auctions that end in every way. Run it: npx vitest run examples/auction */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("the highest bid wins when the time is over, whoever dies meanwhile", async () => {
  await using env = await testEnvironment({ app });
  await env.everyFaultPoint(async (each) => {
    const auction = await each.client.start(app.auction, { buyNow: 100 });
    for (const [by, amount] of [
      ["ann", 10],
      ["bob", 30],
      ["cy", 20],
    ] as const)
      await auction.signal(app.bid, { by, amount });
    await each.skip("1h");
    expect(await auction.result()).toEqual({ receipt: "bob: 30", late: 0 });
  });
});

test("a bid that is high enough ends it at once", async () => {
  await using env = await testEnvironment({ app });
  const auction = await env.client.start(app.auction, { buyNow: 100, lasts: "30d" });
  const begun = env.now().getTime();
  await auction.signal(app.bid, { by: "ann", amount: 120 });
  expect(await auction.result()).toEqual({ receipt: "ann: 120", late: 0 });
  expect(env.now().getTime() - begun).toBeLessThan(86_400_000);
});

test("who has not paid after a day loses to the next", async () => {
  await using env = await testEnvironment({ app });
  env.fake(app.collect, async ({ by, amount }, { signal }) => {
    if (by === "bob") await env.sleep("30d", signal);
    return `${by}: ${amount}`;
  });
  const auction = await env.client.start(app.auction, { buyNow: 50 });
  await auction.signal(app.bid, { by: "ann", amount: 10 });
  await auction.signal(app.bid, { by: "bob", amount: 60 });
  expect(await auction.result()).toEqual({ receipt: "ann: 10", late: 0 });
});
