import { expect, test } from "vitest";
import * as firstApp from "../../../examples/first/app.ts";
import { defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { expectReplay, recordTest, testEnvironment } from "../../../shared/testing/index.ts";

test("what a live instance did becomes a test of the code", async () => {
  await using env = await testEnvironment({ app: firstApp });
  const handle = await env.client.start(firstApp.measure, { words: ["a"] }, { id: "m-1" });
  await handle.result();
  const { history, test: file } = await recordTest(env.client, "m-1", {
    app: "./app.ts",
    runner: "node:test",
  });
  expect(file.name).toBe("m-1.test.ts");
  expect(file.text).toContain('import { test } from "node:test";');
  expect(file.text).toContain(history.name);
  await expectReplay(firstApp, JSON.parse(history.text));

  const other = defineActivity("other", { run: () => 0 });
  const measure = defineOrchestration("measure", { run: (ctx) => ctx.run(other, null) });
  await expect(expectReplay({ measure, other }, JSON.parse(history.text))).rejects.toThrow(
    /does something else than m-1 has done at event \d+[\s\S]*> \d+ /,
  );
});
