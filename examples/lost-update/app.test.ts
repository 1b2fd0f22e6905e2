/** A mistake that only some orders of events show. Run it: npx vitest run examples/lost-update */
import { everySeed, type TestEnvironment, testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

/** Two deposits that begin within half a second of each other; each step takes up to 20 ms. */
async function depositTwice(env: TestEnvironment): Promise<void> {
  let stored = 0;
  const pause = () => env.sleep(Math.round(env.random() * 20));
  env.fake(app.readBalance, async () => {
    await pause();
    return stored;
  });
  env.fake(app.writeBalance, async (balance) => {
    await pause();
    stored = balance;
    return null;
  });
  const first = await env.client.start(app.deposit, 10, { id: "first" });
  await env.skip(Math.round(env.random() * 500));
  const second = await env.client.start(app.deposit, 20, { id: "second" });
  await Promise.all([first.result(), second.result()]);
  if (stored !== 30) throw new Error(`30 were deposited, ${stored} are there`);
}

test("a lost update is found by some seed, and by that seed again", async () => {
  const failed = await everySeed({ app, seeds: 200 }, depositTwice).then(
    () => "",
    (error: Error) => error.message,
  );
  const found = /failed with seed (\d+): (30 were deposited, (?:10|20) are there)/.exec(failed);
  const seed = Number(found?.[1]);
  expect(seed, failed).toBeGreaterThan(0);
  for (let again = 0; again < 2; again++) {
    await using env = await testEnvironment({ app, seed });
    await expect(depositTwice(env)).rejects.toThrow(found?.[2]);
  }
});
