/** Children that share the models of a pool. Run it: npx vitest run examples/model-pool */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("the parts come back in order, from two models, one of which is lost", async () => {
  await using env = await testEnvironment({ app });
  let loads = 0;
  env.fakeSession(app.pooledClassifier, { classify: (_model, text) => ({ label: text, score: 1 }) }, () => {
    loads++;
    return {};
  });
  await env.kill(app.pooledClassifier, { at: "after-call", count: 2 });
  const documents = ["a", "b", "c", "d", "e"];
  const handle = await env.client.start(app.sortAll, { documents, parts: 3 });
  expect((await handle.result()).map(({ label }) => label)).toEqual(documents);
  expect(loads).toBeGreaterThanOrEqual(2);
});
