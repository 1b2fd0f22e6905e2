/** A run that is silent for longer than its heartbeat timeout is over, whatever became of its worker (BEAT-1 to BEAT-3). */
import { beforeEach, expect, test } from "vitest";
import {
  type ActivityOptions,
  collectApp,
  defineActivity,
  defineOrchestration,
} from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const minute = 60_000;
/** Long enough that nothing below is noticed by it. */
const ackWait = "1m";
let world: World;
/** Each run that began. */
const began: { attempt: number }[] = [];

/** Beats for so long, then stays silent; from the second attempt on it says which one it was. */
const beating = defineActivity("beating", {
  run: async (ctx, { beats, endsAfterMs }: { beats: number; endsAfterMs?: number }) => {
    began.push({ attempt: ctx.attempt });
    if (ctx.attempt > 1) return `attempt ${ctx.attempt}`;
    for (let beat = 0; beat < beats; beat++) {
      ctx.heartbeat();
      await sleep(world.clock, 500);
    }
    return endsAfterMs === undefined
      ? new Promise<string>(() => undefined)
      : sleep(world.clock, endsAfterMs).then(() => "attempt 1");
  },
});
const options: ActivityOptions = { heartbeatTimeout: "2s", retry: { initialDelay: "100ms" } };
const app = collectApp({
  beating,
  beats: defineOrchestration("beats", {
    run: (ctx, input: { beats: number; endsAfterMs?: number }) => ctx.run(beating, input, options),
  }),
});

beforeEach(async () => {
  began.length = 0;
  world = new World({ seed: 15, app, faults: { ...noFaults, latencyMs: [1, 2] } });
  await world.prepare();
  await world.orchestrator();
});

const failures = async (id: string) => {
  const commits = (await world.history(id)) ?? [];
  checkHistory(commits);
  return commits.flatMap(({ events }) =>
    events.flatMap((event) => (event.kind === "activity.attempt_failed" ? [event.error] : [])),
  );
};

test("defect 15: a worker that fell silent is noticed by the heartbeat timeout, not by the longer ack wait", async () => {
  await world.watcher();
  const silent = await world.worker(undefined, { ackWait });
  const handle = await world.start("beats", { beats: 1000 }, "a");
  await world.clock.runUntil(() => began.length === 1);
  await world.clock.advance(5_000);
  // Paused and not killed: nothing proves that it is dead.
  silent.pause("held");
  await world.clock.advance(1_500);
  expect(await failures("a")).toEqual([]);
  // Within a second of its timeout, after its last beat.
  await world.clock.advance(1_500);
  expect(await failures("a")).toMatchObject([
    { code: "timeout", message: "beating sent no heartbeat for 2000 ms", details: { timeout: "heartbeat" } },
  ]);
  silent.kill();
  await world.worker(undefined, { ackWait });
  expect(await world.run(handle.result(), 3 * minute)).toBe("attempt 2");
  // The message of the first attempt comes again later: no worker runs it.
  await world.clock.advance(3 * minute);
  expect(began.map(({ attempt }) => attempt)).toEqual([1, 2]);
  expect(world.broker.streams.get(world.names.activitiesStream)?.size).toBe(0);
});

test("BEAT-1: a run that beats in time goes on for as long as it likes, and its end is no silence", async () => {
  await world.watcher();
  await world.worker(undefined, { ackWait });
  const handle = await world.start("beats", { beats: 60, endsAfterMs: 1_500 }, "a");
  expect(await world.run(handle.result(), 2 * minute)).toBe("attempt 1");
  await world.clock.advance(minute);
  expect(await failures("a")).toEqual([]);
  expect(began).toHaveLength(1);
});

test("BEAT-2: without a watcher the attempt that comes again is reported, not run", async () => {
  const silent = await world.worker(undefined, { ackWait: "10s" });
  const handle = await world.start("beats", { beats: 1000 }, "a");
  await world.clock.runUntil(() => began.length === 1);
  await world.clock.advance(1_000);
  silent.pause("held");
  await world.clock.advance(7_000);
  silent.kill();
  await world.worker(undefined, { ackWait: "10s" });
  expect(await world.run(handle.result(), minute)).toBe("attempt 2");
  expect(began.map(({ attempt }) => attempt)).toEqual([1, 2]);
  expect(await failures("a")).toMatchObject([{ code: "timeout", details: { timeout: "heartbeat" } }]);
});

test("T5: a worker that was only paused tells its result too late", async () => {
  await world.watcher();
  const asleep = await world.worker(undefined, { ackWait: "10s" });
  // Its code would end while it sleeps.
  const handle = await world.start("beats", { beats: 3, endsAfterMs: 1_000 }, "a");
  await world.clock.runUntil(() => began.length === 1);
  await world.clock.advance(1_600);
  asleep.pause("held");
  await world.clock.runUntil(() => world.count("activity.silent") === 1, 5_000);
  await world.clock.advance(1_000);
  asleep.resume();
  expect(await world.run(handle.result(), minute)).toBe("attempt 2");
  await world.clock.advance(minute);
  expect(world.count("completion.late")).toBe(1);
  expect(await failures("a")).toHaveLength(1);
  expect(world.broker.streams.get(world.names.activitiesStream)?.size).toBe(0);
});

test("BEAT-3: a run that beats on through an outage of the bus, longer than its timeout, is not given up", async () => {
  await world.watcher();
  const worker = await world.worker(undefined, { ackWait });
  const handle = await world.start("beats", { beats: 60, endsAfterMs: 100 }, "a");
  await world.clock.runUntil(() => began.length === 1);
  await world.clock.advance(3_000);
  world.broker.stop();
  await world.clock.advance(10_000);
  world.broker.start();
  // It finds back later than the watcher does, which has seen the key expire by then.
  worker.bus.disconnect();
  await world.clock.advance(2_000);
  worker.bus.reconnect();
  expect(await world.run(handle.result(), 2 * minute)).toBe("attempt 1");
  expect(await failures("a")).toEqual([]);
  expect(began).toHaveLength(1);
});
