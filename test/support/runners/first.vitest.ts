/** Run by vitest in a process of its own, as a user does. */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "../../../examples/first/app.ts";

test("measures words", async () => {
  await using env = await testEnvironment({ app });
  const handle = await env.client.start(app.measure, { words: ["to", "be"] });
  expect(await handle.result()).toBe(4);
});
