import { expect, test } from "vitest";
import { TurnWatch } from "../../../services/orchestrator/quarantine/turn-watch.ts";

const limitMs = 10_000;
const turn = { instanceId: "i", since: 500 };

test("T9: a turn that runs for longer than the limit is told, a little after", () => {
  const watch = new TurnWatch(limitMs);
  const told: number[] = [];
  for (let now = 1_000; now <= 13_500; now += watch.everyMs) if (watch.look(turn, now)) told.push(now);
  expect(told).toEqual([11_000, 13_500]);
});

test("T9: a process that was paused for an hour during a turn is not taken for one that runs away", () => {
  const watch = new TurnWatch(limitMs);
  expect(watch.look(turn, 1_000)).toBeUndefined();
  expect(watch.look(turn, 3_600_000)).toBeUndefined();
  expect(watch.look(turn, 3_602_500)).toBeUndefined();
  // Nor where the first look comes after the pause.
  expect(new TurnWatch(limitMs).look(turn, 3_600_000)).toBeUndefined();
});

test("T9: turns that follow each other are not taken for one", () => {
  const watch = new TurnWatch(limitMs);
  for (let now = 1_000; now <= 60_000; now += watch.everyMs)
    expect(watch.look({ instanceId: "i", since: now - 2_000 }, now)).toBeUndefined();
  expect(watch.look(undefined, 70_000)).toBeUndefined();
});
