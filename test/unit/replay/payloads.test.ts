import { expect } from "vitest";
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../support/worlds/instance-bench.ts";
import { activated, completed, held, signal, start } from "../../support/worlds/instance-messages.ts";

const echo = defineActivity("echo", { run: async (_ctx, input: unknown) => input });
const store = defineSession("store", {
  config: z.object({ big: z.string() }),
  init: (_ctx, config) => config,
  calls: { get: call({ run: () => 0 }) },
});
const big = "ü".repeat(60);
const small = "small";
const limit = { inlineBytes: 100 };

/** A value that came in as a blob, stored by its sender. */
const asBlob = (bench: Bench, value: unknown) => {
  const key = `in/${bench.blobs.size}`;
  bench.blobs.set(key, value);
  return { blob: { key, bytes: 1, sha256: "0".repeat(64) } };
};

const carries = defineOrchestration("carries", {
  async run(ctx, input: unknown) {
    ctx.setStatus(big);
    const effect = ctx.sideEffect(() => ({ big }));
    const [first, second] = await Promise.all([
      ctx.run(echo, big),
      ctx.run(echo, small),
      ctx.child("kid", big),
    ]);
    return { input, effect: effect.big === big, first, second, big };
  },
});

const isBlob = { blob: expect.objectContaining({ bytes: expect.any(Number) }) };

scenario(
  "what is too big for a commit lies beside it; the code never notices",
  { echo, carries },
  async (bench) => {
    const { events } = await bench.turn({
      kind: "start",
      name: "carries",
      input: asBlob(bench, { in: big }),
    });
    expect(events).toMatchObject([
      { kind: "instance.started", input: isBlob },
      { kind: "status.set", status: isBlob },
      { kind: "side_effect.recorded", value: isBlob },
      { kind: "activity.scheduled", input: isBlob },
      { kind: "activity.scheduled", input: { json: small } },
      { kind: "child.scheduled", input: isBlob },
    ]);
    const [first, second] = bench.open("echo") as [number, number];
    const report = completed(first);
    if (report.kind === "activity" && report.report.result.kind === "completed")
      report.report.result.output = asBlob(bench, "big answer");
    await bench.turn(report, completed(second, "answer"));
    await bench.turn({
      kind: "child",
      report: { v: 1, execution: 1, of: 6, result: { kind: "completed", output: asBlob(bench, 1) } },
    });
    const { output } = bench.state;
    expect(output).toEqual(isBlob);
    const value = output && "blob" in output ? bench.blobs.get(output.blob.key) : undefined;
    expect(value).toEqual({ input: { in: big }, effect: true, first: "big answer", second: "answer", big });
  },
  limit,
);

const opens = defineOrchestration("opens", {
  async run(ctx) {
    await ctx.openSession(store, { config: { big } });
    await ctx.openSession({ id: "bare", lazy: true, recovery: { rebuild: { activity: echo, input: big } } });
  },
});

scenario(
  "so do the config of a session and the input of its rebuild",
  { echo, store, opens },
  async (bench) => {
    const { effects } = await bench.turn(start("opens"));
    expect(effects).toContainEqual(
      expect.objectContaining({ kind: "claim", session: expect.objectContaining({ config: isBlob }) }),
    );
    const { events } = await bench.turn(activated("i1-s1", held(1)));
    expect(events[2]).toMatchObject({ kind: "session.opened", options: { rebuild: { input: isBlob } } });
  },
  limit,
);

const relays = defineOrchestration("relays", {
  async run(ctx, { again }: { again: boolean; big?: unknown }): Promise<unknown> {
    await ctx.waitForSignal("go");
    if (again) return ctx.continueAsNew({ again: false, big });
    return await ctx.waitForSignal("data");
  },
});

scenario(
  "a big signal stays beside the history when it is carried over",
  { relays },
  async (bench) => {
    await bench.turn({ kind: "signal", name: "data", payload: asBlob(bench, { big: "signal" }) });
    await bench.turn(start("relays", { again: true }));
    const { events } = await bench.turn(signal("go"));
    expect(events).toMatchObject([
      { kind: "signal.received" },
      { kind: "instance.continued", input: isBlob, signals: [{ name: "data", payload: isBlob }] },
      { kind: "instance.started", input: isBlob, carried: { signals: [{ name: "data", payload: isBlob }] } },
    ]);
    await bench.turn(signal("go"));
    expect(bench.output).toEqual({ big: "signal" });
  },
  limit,
);

scenario(
  "size is counted in bytes",
  { echo, flow: defineOrchestration("flow", { run: (ctx) => ctx.run(echo, "ü".repeat(50)) }) },
  async (bench) => {
    const { events } = await bench.turn(start("flow"));
    expect(events[1]).toMatchObject({ input: isBlob });
  },
  limit,
);

const hundredsOfKilobytes = { text: "x".repeat(300_000) };

scenario(
  "what is large is not read again by whoever asked for it; a side effect sees its value all the same",
  {
    echo,
    flow: defineOrchestration("flow", {
      async run(ctx) {
        const made = ctx.sideEffect(() => hundredsOfKilobytes);
        const length = made.text.length;
        return [length, await ctx.run(echo, made)];
      },
    }),
  },
  async (bench) => {
    const { events } = await bench.turn(start("flow"));
    expect(events).toMatchObject([{}, { value: isBlob }, { input: isBlob }]);
    expect([...bench.blobs.values()]).toEqual([hundredsOfKilobytes, hundredsOfKilobytes]);
    await bench.turn(completed(bench.task("echo"), "back"));
    expect(bench.output).toEqual([300_000, "back"]);
  },
  limit,
);

const nested = (levels: number): unknown => (levels === 0 ? 0 : [nested(levels - 1)]);

const tooDeep = defineOrchestration("too-deep", {
  async run(ctx, levels: number) {
    const refused: unknown[] = [];
    const attempts = [
      () => ctx.run(echo, nested(levels)),
      () => ctx.child("kid", nested(levels)),
      async () => ctx.setStatus(nested(levels)),
      async () => ctx.sideEffect(() => nested(levels)),
      () => ctx.openSession(store, { config: nested(levels) as { big: string } }),
    ];
    for (const attempt of attempts) {
      await attempt().catch((error: unknown) =>
        refused.push(error instanceof Error && "code" in error ? error.code : error),
      );
    }
    return levels === 181 ? refused : nested(levels);
  },
});

scenario(
  "a value nested so deep that nobody behind could read it is refused where it is given",
  { echo, tooDeep, store },
  async (bench) => {
    await bench.turn(start("too-deep", 181));
    expect(bench.output).toEqual([
      "not_serialisable",
      "not_serialisable",
      "not_serialisable",
      "not_serialisable",
      "invalid_config",
    ]);
  },
);

scenario(
  "returned, it fails the instance",
  { flow: defineOrchestration("flow", { run: async () => nested(181) }) },
  async (bench) => {
    await bench.turn(start("flow"));
    expect(bench.state).toMatchObject({ status: "failed", error: { code: "not_serialisable" } });
  },
);

scenario(
  "a value that is gone sets the instance aside; brought back, it goes on (T9)",
  { flow: defineOrchestration("flow", { run: (ctx) => ctx.waitForSignal("data") }) },
  async (bench) => {
    await bench.turn(start("flow"));
    await bench.turn({ kind: "signal", name: "data", payload: gone });
    expect(bench.fault).toMatchObject({ code: "blob_missing" });
    expect(bench.commits.at(-1)).toMatchObject({ deferred: true, events: [{ kind: "signal.received" }] });
    bench.blobs.set(gone.blob.key, "found");
    await bench.reload();
    await bench.turn(signal("other"));
    expect([bench.fault, bench.output]).toEqual([undefined, "found"]);
  },
);

const gone = { blob: { key: "in/gone", bytes: 1, sha256: "0".repeat(64) } };
