/** Run by node:test, which waits until nothing is open any more. TEST_NATS: the same on a real server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnvironment } from "holdfast/testing";
import * as app from "../../../examples/first/app.ts";

const nats = process.env.TEST_NATS;

test("measures words", async () => {
  await using env = await testEnvironment({ app, nats });
  const handle = await env.client.start(app.measure, { words: ["to", "be"] });
  assert.equal(await handle.result(), 4);
});

test("a worker that dies is replaced", async () => {
  await using env = await testEnvironment({ app, nats });
  await env.kill(app.tally, { at: "after-call" });
  const handle = await env.client.start(app.measure, { words: ["to", "be"] });
  assert.equal(await handle.result(), 4);
  await env.expectHistory(handle, ["session.activated", "session.lost", "session.activated"]);
});

test("an outage is survived", async () => {
  await using env = await testEnvironment({ app, nats });
  const handle = await env.client.start(app.measure, { words: ["to", "be"] });
  await env.outage("1s");
  assert.equal(await handle.result(), 4);
});
