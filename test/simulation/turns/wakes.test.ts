/**
 * Owners that die around a timer. A timer fires in the owner's memory first, and its durable twin up to 250 ms later by
 * the server's clock: whatever the owner has left undone by then, the twin must bring to an end (T3).
 */
import { expect, test } from "vitest";
import { ActivityTask } from "../../../schemas/index.ts";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { encode } from "../../../shared/bus/index.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const lateSchedules = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [125, 125] } as const;

type Run = "fails" | "hangs";
/** What the first runs of the activity do; all others return. */
let script: readonly Run[] = [];
let runs = 0;
const scripted = defineActivity("scripted", {
  run: async () => {
    const what = script[runs++];
    if (what === "fails") throw new Error("not today");
    if (what === "hangs") await new Promise(() => undefined);
    return "done";
  },
});
const begun: string[] = [];
const long = defineActivity("long", {
  run: async (ctx, who: string) => {
    begun.push(who);
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
  },
});
const app = collectApp({
  rounds: defineOrchestration("rounds", {
    run: async (ctx, n: number) => {
      await ctx.sleep("2s");
      return n < 3 ? ctx.continueAsNew(n + 1) : n;
    },
  }),
  nap: defineOrchestration("nap", { run: (ctx) => ctx.sleep("10s") }),
  "nap-then-work": defineOrchestration("nap-then-work", {
    run: async (ctx) => {
      await ctx.sleep("5s");
      return ctx.run(scripted, null);
    },
  }),
  "nap-then-two": defineOrchestration("nap-then-two", {
    run: async (ctx) => {
      const late = ctx.sleep("5m");
      await ctx.sleep("5s");
      await Promise.all([ctx.run(long, "a"), late]);
    },
  }),
  "nap-then-anew": defineOrchestration("nap-then-anew", {
    run: async (ctx, life: number) => {
      if (life > 1) return ctx.run(scripted, null);
      await ctx.sleep("5s");
      return ctx.continueAsNew(life + 1);
    },
  }),
  long,
  pair: defineOrchestration("pair", {
    run: (ctx) =>
      Promise.all([
        ctx.run(long, "a", { scheduleToClose: "10m" }).catch(() => "too late"),
        ctx.run(long, "b"),
      ]),
  }),
  scripted,
  patient: defineOrchestration("patient", {
    run: (ctx) =>
      ctx.run(scripted, null, { startToClose: "4s", retry: { initialDelay: "1s", maxAttempts: 5 } }),
  }),
  bounded: defineOrchestration("bounded", {
    run: (ctx) =>
      ctx.run(scripted, null, {
        scheduleToStart: "10s",
        scheduleToClose: "60s",
        retry: { initialDelay: "1s", maxAttempts: 5 },
      }),
  }),
});

async function open(...first: Run[]): Promise<World> {
  script = first;
  runs = 0;
  begun.length = 0;
  const world = new World({ seed: 1, app, faults: lateSchedules });
  await world.prepare();
  return world;
}

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "effects.half_published",
  "turn.after_effects",
  "continue.between_executions",
];
const deaths = points.flatMap((point) => [1, 2, 3, 4, 5, 6].map((count) => ({ point, count })));

test.each(deaths)("an execution that ended by a timer goes on: death at $point, $count", async (death) => {
  const world = await open();
  const first = await world.orchestrator(death);
  const handle = await world.start("rounds", 1, "a");
  await world.clock.advance(10_000);
  first.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 300_000)).toBe(3);
  checkHistory((await world.history("a")) ?? []);
  await world.clock.advance(10_000); // a wake may still be on its way
  const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
  expect(inbox?.messages, "no schedule is left").toBe(0);
});

const laterDeaths = deaths.filter(({ count }) => count > 1 && count < 5);

test.each(laterDeaths)("a retry after a timeout is sent: death at $point, $count", async (death) => {
  const world = await open("hangs");
  const first = await world.orchestrator(death);
  const handle = await world.start("patient", null, "a");
  await world.clock.advance(500);
  const worker = await world.worker();
  await world.clock.advance(1000);
  // The worker died with its work: no report will come.
  worker.kill();
  await world.run(world.outside.purge(world.names.activitiesStream, ">", Number.MAX_SAFE_INTEGER));
  await world.clock.advance(20_000);
  first.kill();
  await world.worker();
  await world.orchestrator();
  expect(await world.run(handle.result(), 300_000)).toBe("done");
});

test("a deadline that comes back after another one wakes too", async () => {
  const world = await open("fails", "hangs");
  const first = await world.orchestrator();
  await world.worker();
  const handle = await world.start("bounded", null, "a");
  await world.clock.advance(20_000);
  expect(runs, "the second one is under way").toBe(2);
  first.kill();
  await world.orchestrator();
  await expect(world.run(handle.result(), 120_000)).rejects.toMatchObject({ code: "timeout" });
});

test("a clock behind the server's makes no timer early, and loses none", async () => {
  const world = await open();
  const first = await world.orchestrator(undefined, { clockAheadMs: -2000 });
  const startedAt = world.clock.now();
  const handle = await world.start("nap", null, "a");
  // The durable one has come by now, and was too early for this owner.
  await world.clock.advance(9000);
  expect(await world.run(handle.status())).toMatchObject({ status: "running" });
  first.kill();
  await world.orchestrator();
  await world.run(handle.result(), 60_000);
  expect(world.clock.now() - startedAt).toBeGreaterThanOrEqual(10_000);
});

const before = ["a repeated start", "a signal"] as const;
const dying = before.flatMap((what) =>
  (["nap-then-work", "nap-then-anew"] as const).flatMap((program) =>
    (["turn.after_append", "effects.half_published"] as const).flatMap((point) =>
      [2, 3].flatMap((count) =>
        [0, 300_000].map((deadForMs) => ({ what, program, point, count, deadForMs })),
      ),
    ),
  ),
);

test.each(dying)(
  "defect 5: $what before the twin of a timer does not hide a death $deadForMs ms ago: $program, $point, $count",
  async (day) => {
    const { what, program, point, count, deadForMs } = day;
    const world = await open();
    await world.worker();
    const first = await world.orchestrator({ point, count });
    const handle = await world.start(program, 1, "a");
    await world.clock.advance(5050); // its twin comes at 5125
    if (what === "a signal") await world.signal("a", "hello", 1);
    else await world.run(world.outside.publish(world.names.start("a", program), encode(1), {}));
    first.kill();
    await world.clock.advance(deadForMs);
    await world.orchestrator(undefined, { clockAheadMs: 120_000 });
    expect(await world.run(handle.result(), 300_000)).toBe("done");
    expect(runs).toBe(1);
  },
);

test("a wake that the asked copies do not show yet tells of a death when it arrives", async () => {
  const world = await open();
  const { broker, names, clock } = world;
  for (const name of [names.timersStream, names.inboxStream]) {
    const stream = broker.streams.get(name);
    if (!stream) throw new Error(`there is no ${name}`);
    // As the copy of a server that is half a minute behind shows it.
    stream.readAny = (filter, from) =>
      stream.read(filter, from).filter(({ at }) => at < clock.now() - 30_000);
  }
  await world.worker();
  const first = await world.orchestrator({ point: "turn.after_append", count: 2 });
  const handle = await world.start("nap-then-work", 1, "a");
  await world.clock.advance(5_050); // its twin comes at 5125
  first.kill();
  await world.orchestrator();
  expect(await world.run(handle.result(), 20_000)).toBe("done");
  expect(runs).toBe(1);
});

test("a deadline that is early by the clock of its new owner is no sign of a death: nothing runs twice", async () => {
  const world = await open();
  const first = await world.orchestrator();
  await world.start("pair", null, "a");
  await world.clock.advance(100); // by the queue, as there is no worker yet
  await world.worker();
  await world.clock.advance(60_000);
  await world.run(first.stop());
  await world.orchestrator(undefined, { clockAheadMs: -1000 });
  await world.clock.advance(620_000);
  expect(begun.sort()).toEqual(["a", "b"]);
});

test("defect 5: nothing is sent again because another timer is due long after", async () => {
  const world = await open();
  await world.worker();
  const first = await world.orchestrator();
  await world.start("nap-then-two", null, "a");
  await world.clock.advance(10_000);
  expect(begun).toEqual(["a"]);
  await world.run(first.stop());
  await world.clock.advance(300_000);
  await world.orchestrator();
  await world.clock.advance(400_000);
  expect(begun, "its second timer found the work of the first under way").toEqual(["a"]);
});

test("defect 5: a report by the lane is answered elsewhere where no anchor stands for what it leads to", async () => {
  const world = await open("hangs");
  const owner = await world.orchestrator();
  const handle = await world.start("nap-then-work", null, "a");
  await world.clock.advance(100);
  await world.clock.advance(5_500); // by the queue, as there is no worker
  const [queued] =
    (await world.run(world.outside.read(world.names.activitiesStream, world.names.allActivities))) ?? [];
  const { capability } = ActivityTask.parse(JSON.parse(Buffer.from(queued?.body ?? "").toString()));
  const report = {
    ...{ v: 1, execution: 1, of: 4, attempt: 1, workerId: "w", capability },
    result: { kind: "completed", output: { json: "told" } },
  };
  const subject = world.names.laneOfOwner(owner.id, "a", "report");
  const reply = await world.run(world.outside.request(subject, encode(report), { timeoutMs: 1_000 }));
  expect(reply.kind === "reply" && JSON.parse(Buffer.from(reply.body).toString())).toEqual({
    v: 1,
    kind: "elsewhere",
  });
  await world.run(world.outside.publish(world.names.verb("a", "activity"), encode(report), {}));
  expect(await world.run(handle.result())).toBe("told");
});
