import { expect, test } from "vitest";
import * as app from "../../../examples/lost-update/app.ts";
import { testEnvironment } from "../../../shared/testing/index.ts";

test("the same seed gives the same history, to the millisecond, and another seed another one", async () => {
  const run = async (seed: number) => {
    await using env = await testEnvironment({ app, seed, faults: "some" });
    env.fake(app.readBalance, async () => {
      await env.sleep(Math.round(env.random() * 1000));
      return 0;
    });
    const first = await env.client.start(app.deposit, 10, { id: "first" });
    const second = await env.client.start(app.deposit, 20, { id: "second" });
    await Promise.all([first.result(), second.result()]);
    return `${await env.history("first")}\n${await env.history("second")}`;
  };
  const once = await run(11);
  expect(await run(11)).toBe(once);
  expect(await run(12)).not.toBe(once);
});
