import { expect } from "vitest";
import { nextDeadline } from "../../../../shared/replay/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import { activated, held, lost, signal, start, wake } from "../../../support/worlds/instance-messages.ts";

import { active, uses } from "./chat-story.ts";

const limited = uses({ executionTimeout: "1m", onLost: "reclaim" });

scenario(
  "executionTimeout ends a session whatever its policy, and its holder is told",
  limited,
  async (bench) => {
    const { effects: first } = await bench.turn(start("uses"));
    const opened = bench.now;
    expect(first).toContainEqual({ kind: "schedule", of: 2, at: opened + 60_000 });
    await bench.turn(activated("s", held(1)));
    expect(nextDeadline(bench.state)).toBe(opened + 60_000);
    bench.now = opened + 60_000;
    const { events, effects } = await bench.turn(wake());
    expect(events.map((event) => event.kind)).toEqual(["session.lost", "activity.failed", "activity.failed"]);
    expect(effects.map((effect) => effect.kind)).toEqual(["close-session", "register-session", "unschedule"]);
    await bench.turn(signal("more"));
    expect(bench.output).toMatchObject({ more: { reason: "execution_timeout" } });
  },
);

scenario("nobody brings a session back whose time is over", limited, async (bench) => {
  await active(bench);
  bench.advance(60_000);
  await bench.turn(wake());
  expect((await bench.turn(activated("s", held(2, 25, "w1"), { warm: true }))).verdicts).toEqual(["fenced"]);
});

scenario("it counts over losses, and while nobody holds it", limited, async (bench) => {
  await active(bench);
  const opened = bench.now - 10;
  bench.advance(50_000);
  await bench.turn(lost("s", held(1)));
  expect(nextDeadline(bench.state)).toBe(opened + 60_000);
  bench.now = opened + 60_000;
  const { events, effects } = await bench.turn(wake());
  expect(events.map((event) => event.kind)).toEqual(["activity.failed", "activity.failed", "session.lost"]);
  expect(effects.map((effect) => effect.kind)).toContain("withdraw-claim");
  expect(nextDeadline(bench.state)).toBeUndefined();
});

scenario(
  "whoever was still opening it hears so",
  uses({ executionTimeout: "10s", creationTimeout: "10s" }),
  async (bench) => {
    await bench.turn(start("uses"));
    bench.advance(10_000);
    await bench.turn(wake());
    expect(bench.state).toMatchObject({ status: "failed", error: { code: "session_lost" } });
  },
);
