/** Run by node:test, which waits until nothing is open any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnvironment } from "holdfast/testing";
import * as app from "../../../examples/first/app.ts";

test("measures words", async () => {
  await using env = await testEnvironment({ app });
  const handle = await env.client.start(app.measure, { words: ["to", "be"] });
  assert.equal(await handle.result(), 4);
});
