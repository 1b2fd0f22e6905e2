/** Limits by key. Run it: npx vitest run examples/flow-control */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("two imports of a disk run at a time, and those that wait get their turn", async () => {
  await using env = await testEnvironment({ app });
  const flow = { key: "disk", concurrency: 2 };
  const handles = [];
  for (let i = 0; i < 5; i++)
    handles.push(await env.client.start(app.importFile, { ms: 60_000 }, { id: `import-${i}`, flow }));
  const spans = await Promise.all(handles.map((handle) => handle.result()));
  for (const { from } of spans)
    expect(spans.filter((other) => other.from <= from && from < other.to).length).toBeLessThanOrEqual(2);
});
