/** An account over the years. Run it: npx vitest run examples/account */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("every move counts once, over years and over the death of its orchestrator", async () => {
  await using env = await testEnvironment({ app });
  const account = await env.client.start(app.account);
  let balance = 0;
  for (let year = 1; year <= 5; year++) {
    balance += year;
    expect(await account.update(app.move, year)).toBe(balance);
    await env.killOrchestrator();
    await env.skip("365d");
  }
  await expect(account.update(app.move, -100)).rejects.toThrow("not enough money");
  expect(await account.query("statement")).toEqual({ balance: 15, moves: 5 });
  await account.signal("close");
  expect(await account.result()).toBe(15);
});
