/** The first application, with everybody killed once. Run it: npx vitest run examples/first */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("the lengths of all words are summed on one worker", async () => {
  await using env = await testEnvironment({ app });
  const handle = await env.client.start(app.measure, { words: ["to", "be", "or"] });
  expect(await handle.result()).toBe(6);
});

test("a worker that dies takes what it had counted along, and the rest is still counted", async () => {
  await using env = await testEnvironment({ app });
  await env.kill(app.tally, { at: "after-call" }); // the first call has run, and its answer is not out yet
  const handle = await env.client.start(app.measure, { words: ["to", "be", "or"] });
  expect(await handle.result()).toBe(6);
  await env.expectHistory(handle, ["session.activated", "session.lost", "session.activated"]);
});
