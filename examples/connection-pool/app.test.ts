/** Real connections to a real little server, in the process of the test. Run it: npx vitest run examples/connection-pool */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("many questions share few connections", async () => {
  await using env = await testEnvironment({ app });
  const handle = await env.client.start(app.askMany, { questions: 10, connections: 2 });
  const { answers, connections } = await handle.result();
  expect(answers).toEqual(Array.from({ length: 10 }, (_, i) => `QUESTION ${i}`));
  expect(connections).toBe(2);
});
