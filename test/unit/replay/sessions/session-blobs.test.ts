import { expect } from "vitest";
import { defineOrchestration, defineSession } from "../../../../shared/definitions/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  blobChanged,
  held,
  lost,
  signal,
  start,
} from "../../../support/worlds/instance-messages.ts";

const cache = defineSession("cache", { init: () => ({}), calls: {} });
const uses = defineOrchestration("uses", {
  async run(ctx) {
    await using _session = await ctx.openSession(cache, { id: "s", onLost: "reclaim" });
    await ctx.waitForSignal("end");
  },
});
const app = { cache, uses };

scenario("a blob counts once, under the epoch of the holder, and never later", app, async (bench) => {
  await bench.turn(start("uses"));
  expect((await bench.turn(blobChanged("s", held(1), "a", "early"))).verdicts).toEqual(["fenced"]);
  await bench.turn(activated("s", held(1)));
  const first = blobChanged("s", held(1), "a", "k1");
  const { verdicts, effects } = await bench.turn(first);
  expect(verdicts).toEqual(["facts"]);
  expect(effects).toEqual([{ kind: "register-session", sessionId: "s" }]);
  expect((await bench.turn(first)).verdicts).toEqual(["repeated"]);
  // What it replaces is referred to no more.
  expect((await bench.turn(blobChanged("s", held(1), "a", "k2"))).effects).toContainEqual({
    kind: "forget-blobs",
    keys: ["k1"],
  });
  await bench.turn(blobChanged("s", held(1), "b", "k3"));
  await bench.turn(lost("s", held(1)));
  expect((await bench.turn(blobChanged("s", held(1), "a", "late"))).verdicts).toEqual(["fenced"]);
  const claim = bench.effects.findLast(({ kind }) => kind === "claim");
  expect(claim).toMatchObject({ attachment: 2, session: { blobs: [{ key: "k2" }, { key: "k3" }] } });
  await bench.turn(activated("s", held(2)));
  expect((await bench.turn(blobChanged("s", held(1), "b", undefined))).verdicts).toEqual(["fenced"]);
  const deleted = await bench.turn(blobChanged("s", held(2), "b", undefined));
  expect(deleted.effects).toContainEqual({ kind: "forget-blobs", keys: ["k3"] });
  expect((await bench.turn(blobChanged("s", held(2), "b", undefined))).verdicts).toEqual(["repeated"]);
  expect((await bench.turn(blobChanged("other", held(1), "a", "k9"))).verdicts).toEqual(["unknown"]);
  const ended = await bench.turn(signal("end", null));
  expect(ended.effects).toContainEqual({ kind: "forget-blobs", keys: ["k2"] });
  expect(bench.state.sessions.get("s")?.blobs).toBeUndefined();
});
