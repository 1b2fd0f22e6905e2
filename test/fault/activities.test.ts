/** Retries and timeouts from the orchestration's point of view, and timers that are neither early nor far too late. */
import { expect, it } from "vitest";
import { installation } from "../support/processes/installation.ts";

const world = installation({ app: "lifecycle", watchers: 0 });
const { journal, start } = world;

const run = async (name: string, input: unknown, id: string) =>
  (await start(name, input, id)).result({ timeout: "40s" });

it("retries as often as allowed, each attempt once", async () => {
  expect(await run("persistent", 3, "r1")).toBe(4);
  expect(journal.lines("flaky r1")).toEqual(["flaky r1 1", "flaky r1 2", "flaky r1 3", "flaky r1 4"]);
  await expect(run("persistent", 9, "r2")).rejects.toMatchObject({ message: "attempt 5 fails" });
  expect(journal.lines("flaky r2")).toHaveLength(5);
  await world.streams.checkEnded(["r1"]);
  await world.streams.checkEnded(["r2"], "instance.failed");
});

it("does not retry what says that it is useless", async () => {
  expect(await run("gave-up", null, "r3")).toBe("never_works");
  expect(journal.lines("hopeless r3")).toHaveLength(1);
});

it("notices silence, and hands the last heartbeat to the next attempt", async () => {
  expect(await run("fading", null, "h1")).toEqual({ attempt: 2, before: { done: 2 } });
});

it("names which of the four timeouts it was", async () => {
  const outcomes = (await run("timed-out", null, "t1")) as { code: string; details: unknown }[];
  expect(outcomes.map(({ code }) => code)).toEqual(["timeout", "timeout", "timeout", "timeout"]);
  expect(outcomes.map(({ details }) => details)).toEqual([
    expect.objectContaining({ timeout: "start_to_close" }),
    expect.objectContaining({ timeout: "schedule_to_close" }),
    expect.objectContaining({ timeout: "schedule_to_start" }),
    expect.objectContaining({ timeout: "heartbeat" }),
  ]);
});

it("I11: timers never fire early, and by the owner's own clock while the instance is live", async () => {
  const late: number[] = [];
  const local: boolean[] = [];
  for (const [i, ms] of [5, 50, 200].entries()) {
    const slept = (await run("sleepy", { ms, times: 10 }, `s${i}`)) as number[];
    for (const each of slept) {
      expect(each).toBeGreaterThanOrEqual(ms);
      late.push(each - ms);
    }
    await world.streams.checkEnded([`s${i}`]);
    for (const { events, inbox } of await world.streams.history(`s${i}`))
      if (events.some(({ kind }) => kind === "timer.fired")) local.push(inbox.length === 0);
  }
  late.sort((a, b) => a - b);
  console.info(`timers late by ${late[Math.floor(late.length / 2)]} ms (p50), ${late.at(-1)} ms (max)`);
  // Of a timer that the server's schedule fired, there is a message.
  expect(local.some(Boolean)).toBe(true);
});
