/** What a test cannot mean is refused by name: it would never take effect, and the test would pass. */
import { expect, test } from "vitest";
import * as app from "../../../examples/first/app.ts";
import { call, defineActivity, defineSession } from "../../../shared/definitions/index.ts";
import { everySeed, testEnvironment } from "../../../shared/testing/index.ts";

test.each([
  [{}, "testEnvironment needs { app }"],
  [{ app, sed: 3 }, 'testEnvironment has no option "sed"; did you mean "seed"?'],
  [{ app, seed: Number.NaN }, "seed: NaN is no whole number"],
  [{ app, workers: -1 }, "workers: -1 is no whole number of at least 0"],
  [{ app, orchestrators: 1.5 }, "orchestrators: 1.5 is no whole number of at least 0"],
  [{ app, faults: "any" }, 'faults: there is no "any" among none, some'],
  [{ app, faults: { publishlost: 1 } }, 'faults has no option "publishlost"; did you mean "publishLost"?'],
  [{ app, timeZone: "Europe/Atlantis" }, 'timeZone: "Europe/Atlantis" is no time zone'],
])("an environment with %j", async (options, why) => {
  await expect(testEnvironment(options as never)).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringContaining(why),
  });
});

test("no seeds", async () => {
  for (const seeds of [0, []])
    await expect(everySeed({ app, seeds }, async () => undefined)).rejects.toThrow("seeds: ");
});

test("deaths where nobody comes, fakes of what is not there", async () => {
  await using env = await testEnvironment({ app });
  const others = defineSession("others", { init: () => 0, calls: { ask: call({ run: () => 1 }) } });
  const kill = (at: string, count = 1) => env.kill(app.tally, { at, count } as never);
  await expect(kill("after-clam")).rejects.toThrow('there is no "after-clam"');
  await expect(kill("after-clam")).rejects.toThrow('did you mean "after-claim"?');
  await expect(kill("after-claim", 0)).rejects.toThrow("env.kill count: 0");
  await expect(env.kill(others, { at: "after-claim" })).rejects.toThrow('there is no "others" among tally');
  const other = defineActivity("length", { run: async () => 1 });
  expect(() => env.fake(other, () => 2)).toThrow('there is no "length" among length-of');
  expect(() => env.fake(app.lengthOf, 5 as never)).toThrow("a fake is a function");
  expect(() => env.fakeSession(others, {})).toThrow('there is no "others"');
  expect(() => env.fakeSession(app.tally, { ad: () => 1 } as never)).toThrow(
    'env.fakeSession of tally: there is no "ad" among add; did you mean "add"?',
  );
  env.fakeSession(app.tally, { add: undefined } as never);
});
