import { expect } from "vitest";
import { defineOrchestration, defineSession } from "../../../../shared/definitions/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import { activated, held, lost, noted, signal, start } from "../../../support/worlds/instance-messages.ts";

const cache = defineSession("cache", { init: () => ({}), calls: {} });
const uses = defineOrchestration("uses", {
  async run(ctx) {
    const session = await ctx.openSession(cache, {
      id: "s",
      onLost: "reclaim",
      metadata: { team: "a", step: "0" },
    });
    const seen: unknown[] = [session.info.metadata];
    for (;;) {
      const change = await ctx.waitForSignal<Record<string, string | null> | "look" | "close" | "end">("do");
      if (change === "end") return seen;
      if (change === "close") await session.close();
      else if (change !== "look") {
        try {
          session.setMetadata(change);
        } catch (error) {
          seen.push((error as { code?: string }).code);
          continue;
        }
      }
      seen.push(session.info.metadata);
    }
  },
});
const app = { cache, uses };

scenario("code changes the metadata of its session, and sees it at once and later", app, async (bench) => {
  await bench.turn(start("uses"));
  await bench.turn(activated("s", held(1)));
  const { events, effects } = await bench.turn(signal("do", { step: "1", team: null, note: "x" }));
  expect(events.map(({ kind }) => kind)).toEqual(["signal.received", "session.metadata_set"]);
  expect(effects).toEqual([{ kind: "register-session", sessionId: "s" }]);
  expect(bench.state.sessions.get("s")?.options.metadata).toEqual({ step: "1", note: "x" });
  await bench.turn(signal("do", "look"));
  // Two in one turn build on each other.
  await bench.turn(signal("do", { a: "1" }), signal("do", { b: "2", note: null }));
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual([
    { team: "a", step: "0" },
    { step: "1", note: "x" },
    { step: "1", note: "x" },
    { step: "1", note: "x", a: "1" },
    { step: "1", a: "1", b: "2" },
  ]);
});

scenario(
  "what a call says counts once, under the epoch of the holder, and never later",
  app,
  async (bench) => {
    await bench.turn(start("uses"));
    expect((await bench.turn(noted("s", held(1), { step: "early" }))).verdicts).toEqual(["fenced"]);
    await bench.turn(activated("s", held(1)));
    const first = noted("s", held(1), { step: "1", "holdfast-key": "stolen" });
    expect((await bench.turn(first)).verdicts).toEqual(["facts"]);
    expect((await bench.turn(first)).verdicts).toEqual(["repeated"]);
    await bench.turn(signal("do", "look"));
    await bench.turn(lost("s", held(1)));
    expect((await bench.turn(noted("s", held(1), { step: "late" }))).verdicts).toEqual(["fenced"]);
    const claim = bench.effects.findLast(({ kind }) => kind === "claim");
    expect(claim).toMatchObject({ attachment: 2, session: { options: { metadata: { step: "1" } } } });
    await bench.turn(activated("s", held(2)));
    expect((await bench.turn(noted("s", held(1), { step: "old" }))).verdicts).toEqual(["fenced"]);
    expect((await bench.turn(noted("s", held(2), { step: "2" }))).verdicts).toEqual(["facts"]);
    expect((await bench.turn(noted("other", held(1), { step: "2" }))).verdicts).toEqual(["unknown"]);
    await bench.turn(signal("do", "close"));
    expect((await bench.turn(noted("s", held(2), { step: "3" }))).verdicts).toEqual(["fenced"]);
    await bench.turn(signal("do", { step: "4" }));
    await bench.turn(signal("do", "end"));
    expect(bench.output).toEqual([
      { team: "a", step: "0" },
      { team: "a", step: "1" },
      { team: "a", step: "2" },
      "session_unusable",
    ]);
  },
);

scenario("what is not allowed is refused by name and changes nothing", app, async (bench) => {
  await bench.turn(start("uses"));
  await bench.turn(activated("s", held(1)));
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`n${i}`, ""]));
  const bad = [{ "holdfast-pool": "p" }, { "": "x" }, { n: 1 }, { n: "x".repeat(1025) }, many, [], null];
  for (const change of bad) await bench.turn(signal("do", change));
  expect(bench.kinds).not.toContain("session.metadata_set");
  await bench.turn(signal("do", "end"));
  expect(bench.output).toEqual([{ team: "a", step: "0" }, ...bad.map(() => "invalid_metadata")]);
});
