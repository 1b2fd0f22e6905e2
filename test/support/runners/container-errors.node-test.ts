/** Run by the compose test: TEST_NATS cannot be had here, and the error must have TEST_CODE. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnvironment } from "holdfast/testing";
import * as app from "../../../examples/first/app.ts";

const { TEST_NATS: nats, TEST_CODE: code } = process.env;

test("says why there is no server", async () => {
  await assert.rejects(testEnvironment({ app, nats }), { code });
});
