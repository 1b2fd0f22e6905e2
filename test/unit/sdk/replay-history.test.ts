import { expect, test } from "vitest";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { HistoryFile, historyFile } from "../../../shared/sdk/replaying/history-file.ts";
import { replayHistory } from "../../../shared/sdk/replaying/replay-history.ts";
import { Bench } from "../../support/worlds/instance-bench.ts";
import { cancel, completed, signal, start, terminate } from "../../support/worlds/instance-messages.ts";

const step = defineActivity("step", { run: async () => 0 });
const other = defineActivity("other", { run: async () => 0 });
const counts = defineOrchestration("counts", {
  async run(ctx, left: number): Promise<unknown> {
    const got = await ctx.run(step, left);
    if (left > 1) ctx.continueAsNew(left - 1);
    return got;
  },
});
const waits = defineOrchestration("waits", {
  run: async (ctx) => [await ctx.waitForSignal("go"), Math.random(), Date.now()],
});

/** As it is read from a file. */
const file = (bench: Bench, values?: Record<string, unknown>): HistoryFile =>
  HistoryFile.parse(JSON.parse(JSON.stringify(historyFile(bench.instanceId, bench.commits, values))));

async function counted(): Promise<Bench> {
  const bench = new Bench({ step, counts });
  await bench.turn(signal("early", 1));
  await bench.turn(start("counts", 3));
  for (const execution of [1, 2, 3])
    await bench.turn(completed(bench.task("step"), execution, { execution }));
  expect(bench.state.status).toBe("completed");
  return bench;
}

test("the code that wrote a history agrees with it, also where it is over", async () => {
  const bench = await counted();
  expect(await replayHistory(collectApp({ step, counts }), file(bench))).toEqual({
    kind: "agrees",
    instanceId: "i1",
    executions: 3,
    events: bench.events.length,
  });
});

test("the first disagreement is named, in whichever execution it is", async () => {
  const bench = await counted();
  const changed = defineOrchestration("counts", {
    async run(ctx, left: number): Promise<unknown> {
      const got = await ctx.run(left === 2 ? other : step, left);
      if (left > 1) ctx.continueAsNew(left - 1);
      return got;
    },
  });
  expect(await replayHistory(collectApp({ step, counts: changed }), file(bench))).toMatchObject({
    kind: "disagrees",
    execution: 2,
    event: 2,
    code: "nondeterminism",
    message: expect.stringMatching(/history has activity "step".*the code issued activity "other"/),
  });
  const longer = defineOrchestration("counts", {
    async run(ctx, left: number): Promise<unknown> {
      const got = await ctx.run(step, left);
      if (left > 1) ctx.continueAsNew(left - 1);
      await ctx.run(other, 0);
      return got;
    },
  });
  expect(await replayHistory(collectApp({ counts: longer }), file(bench))).toMatchObject({
    execution: 3,
    message: expect.stringMatching(/history has completion .*the code issued activity "other"/),
  });
  expect(await replayHistory(collectApp({ waits }), file(bench))).toMatchObject({
    kind: "disagrees",
    code: "unknown_orchestration",
  });
});

test.each([
  ["waiting", []],
  ["completed", [signal("go", { a: 1 })]],
  ["cancelled", [cancel("enough")]],
  ["terminated", [terminate("now")]],
])("an instance that is %s", async (_status, messages) => {
  const bench = new Bench({ waits });
  await bench.turn(start("waits"));
  if (messages.length > 0) await bench.turn(...messages);
  expect(await replayHistory(collectApp({ waits }), file(bench))).toMatchObject({ kind: "agrees" });
});

test("big values come from the file, or from whoever has them", async () => {
  const echo = defineOrchestration("echo", {
    run: async (ctx, n: number[]) => (n.length > 5 ? ctx.run(step, n.length) : n),
  });
  const bench = new Bench({ step, echo }, "live", { inlineBytes: 10 });
  const blob = { key: "i1/x", bytes: 100, sha256: "0".repeat(64) };
  bench.blobs.set("i1/x", [1, 2, 3, 4, 5, 6]);
  await bench.turn(start("echo", undefined, { input: { blob } }));
  const app = collectApp({ step, echo });
  expect(await replayHistory(app, file(bench, Object.fromEntries(bench.blobs)))).toMatchObject({
    kind: "agrees",
  });
  const fetch = async () => [1, 2, 3, 4, 5, 6];
  expect(await replayHistory(app, file(bench), { fetch })).toMatchObject({ kind: "agrees" });
  await expect(replayHistory(app, file(bench))).rejects.toMatchObject({ code: "value_missing" });
});
