import { expect } from "vitest";
import { defineOrchestration } from "../../../shared/definitions/index.ts";
import { scenario } from "../../support/worlds/instance-bench.ts";
import { cancel, childDone, childFailed, start, terminate } from "../../support/worlds/instance-messages.ts";

const parent = defineOrchestration("parent", {
  async run(ctx) {
    const first = ctx.child("kid", { n: 1 });
    const named = ctx.child("kid", { n: 2 }, { id: "my-kid" });
    const results = await Promise.allSettled([first, named]);
    return results.map((each) =>
      each.status === "fulfilled" ? each.value : [each.reason.name, each.reason.code],
    );
  },
});

scenario("children are started with ids of their own and report back", { parent }, async (bench) => {
  const { effects } = await bench.turn(start("parent"));
  expect(effects).toMatchObject([
    { kind: "summary" },
    { kind: "start-child", id: 2, childId: "i1-c1", name: "kid", input: { json: { n: 1 } }, attached: true },
    { kind: "start-child", id: 3, childId: "my-kid", attached: true },
  ]);
  await bench.turn(childDone(3, "two"));
  await bench.turn(childFailed(2));
  expect(bench.output).toEqual([["ChildError", "sad"], "two"]);
});

scenario(
  "reports of other executions, of strangers and repeated ones are late",
  { parent },
  async (bench) => {
    await bench.turn(start("parent"));
    const { verdicts } = await bench.turn(
      childDone(2, "x", 2),
      childDone(9),
      childDone(1),
      childDone(2),
      childDone(2),
    );
    expect(verdicts).toEqual(["late", "late", "late", "facts", "late"]);
  },
);

const detached = defineOrchestration("detached", {
  async run(ctx) {
    return [ctx.spawn("kid", 1), ctx.spawn("kid", 2, { id: "free" }), ctx.spawn("kid", 3)];
  },
});

scenario("a detached child is nobody's to wait for or to cancel", { detached }, async (bench) => {
  const { effects } = await bench.turn(start("detached"));
  expect(bench.output).toEqual(["i1-c1", "free", "i1-c2"]);
  expect(effects.filter((effect) => effect.kind === "start-child")).toMatchObject([
    { attached: false },
    { attached: false },
    { attached: false },
  ]);
  expect(effects.map((effect) => effect.kind)).not.toContain("cancel-child");
});

scenario("terminating a parent lets go of its attached children", { parent }, async (bench) => {
  await bench.turn(start("parent"));
  const { effects } = await bench.turn(terminate());
  expect(effects).toEqual([
    { kind: "cancel-child", id: 2, childId: "i1-c1" },
    { kind: "cancel-child", id: 3, childId: "my-kid" },
    { kind: "summary" },
  ]);
});

const kid = defineOrchestration("kid", {
  async run(ctx, { how }: { how: string }) {
    if (how === "fail") throw new Error("no");
    if (how === "wait") await ctx.sleep("1h");
    return "grown";
  },
});
const from = { parent: { instanceId: "p" as never, execution: 2, of: 7 } };

scenario("a child tells its parent how it ended", { kid }, async (bench) => {
  const { effects } = await bench.turn(start("kid", { how: "return" }, from));
  expect(effects).toContainEqual({
    kind: "report-to-parent",
    ...from,
    result: { kind: "completed", output: { json: "grown" } },
  });
});

scenario("also when it failed", { kid }, async (bench) => {
  const { effects } = await bench.turn(start("kid", { how: "fail" }, from));
  expect(effects).toContainEqual({
    kind: "report-to-parent",
    ...from,
    result: { kind: "failed", error: expect.objectContaining({ code: "Error", message: "no" }) },
  });
});

for (const [word, message] of [
  ["cancelled", cancel()],
  ["terminated", terminate()],
] as const) {
  scenario(`also when it was ${word}`, { kid }, async (bench) => {
    await bench.turn(start("kid", { how: "wait" }, from));
    const { effects } = await bench.turn(message);
    expect(effects).toContainEqual({
      kind: "report-to-parent",
      ...from,
      result: { kind: "failed", error: expect.objectContaining({ code: word }) },
    });
  });
}

const longId = "x".repeat(128);
scenario(
  "ids made from a long one stay within the rule and apart",
  { detached },
  async (bench) => {
    await bench.turn(start("detached"));
    const [one, , two] = bench.output as string[];
    expect(one).toMatch(/^[A-Za-z0-9_-]{1,128}$/);
    expect(one).not.toBe(two);
    expect(one).toMatch(/-c1$/);
  },
  { instanceId: longId },
);
