/** Which worker runs a plain activity: tags it requires, and the worker of a session it would rather be near. */
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { refuseUnknownNames, workerConfig } from "../../../services/worker/config.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { fixedGeneration } from "../../../shared/fleet/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let world: World;
let asked = false;
let ran: { name: string; workerId: string }[] = [];

const here = defineActivity("here", {
  run: (ctx, _input: null) => {
    ran.push({ name: "here", workerId: ctx.workerId });
    return ctx.workerId;
  },
});
const train = defineActivity("train", {
  requires: { tags: ["gpu", "eu"] },
  run: (ctx, _input: null) => {
    ran.push({ name: "train", workerId: ctx.workerId });
    return ctx.workerId;
  },
});
const trains = defineOrchestration("trains", {
  input: z.int(),
  run: async (ctx, n) => {
    const workers: string[] = [];
    for (let i = 0; i < n; i++) workers.push(await ctx.run(train, null));
    return workers;
  },
});
const cached = defineSession("cached", {
  init: () => ({}),
  calls: { who: call({ run: (_state, _input: null, ctx) => ctx.session.workerId }) },
});
const near = defineOrchestration("near", {
  input: z.int(),
  run: async (ctx, n) => {
    await using session = await ctx.openSession(cached);
    const holder = await session.who(null);
    const ranOn: string[] = [];
    for (let i = 0; i < n; i++) ranOn.push(await ctx.run(here, null, { preferWorkerOf: session }));
    return { holder, ranOn };
  },
});
const nearAfterKill = defineOrchestration("near-after-kill", {
  run: async (ctx) => {
    const session = await ctx.openSession(cached);
    await session.who(null);
    asked = true;
    await ctx.waitForSignal("killed");
    return await ctx.run(here, null, { preferWorkerOf: session });
  },
});
const bareTrain = defineOrchestration("bare-train", {
  run: async (ctx) => {
    await using session = await ctx.openSession();
    try {
      return await session.run(train, null);
    } catch (error) {
      return error instanceof Error && "code" in error ? [error.code, error.message] : "?";
    }
  },
});
const wrong = defineOrchestration("wrong", {
  run: async (ctx) => {
    const tried: unknown[] = [];
    const codes = async (attempt: () => Promise<unknown>) => {
      try {
        await attempt();
      } catch (error) {
        tried.push(error instanceof Error && "code" in error ? error.code : error);
      }
    };
    await codes(async () => ctx.run(here, null, { preferWorkerOf: { id: "of-nobody" } }));
    await codes(async () => ctx.run(here, null, { preferWorkerOf: "s" as never }));
    await codes(async () => ctx.local(train, null));
    return tried;
  },
});

const app = collectApp({ here, train, trains, cached, near, nearAfterKill, bareTrain, wrong });

async function open(seed: number, generation = 2) {
  world = new World({ seed, app, faults: noFaults, generation: fixedGeneration(generation) });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
}
const worker = (tags = "") => world.worker(undefined, { settings: tags ? { WORKER_TAGS: tags } : {} });

beforeEach(() => {
  ran = [];
});

test("an activity that requires tags runs only where they all are", async () => {
  await open(1);
  await worker();
  await worker("gpu");
  const both = await worker("eu,gpu,large");
  const handle = await world.start("trains", 6, "a");
  expect(await world.run(handle.result())).toEqual(Array.from({ length: 6 }, () => both.id));
});

test("it waits for a worker that has them", async () => {
  await open(2);
  await worker("gpu");
  const handle = await world.start("trains", 1, "a");
  await world.clock.advance(20_000);
  expect(ran).toEqual([]);
  const both = await worker("gpu,eu");
  expect(await world.run(handle.result())).toEqual([both.id]);
});

test("on a session whose holder lacks them it is refused by name, and says how to open the session", async () => {
  await open(3);
  await worker("gpu");
  const handle = await world.start("bare-train", null, "a");
  expect(await world.run(handle.result())).toEqual([
    "missing_tags",
    expect.stringMatching(/activity "train" requires eu, .*placement: \{ tags: \["eu"\] \}/),
  ]);
  expect(ran).toEqual([]);
});

test.each([4, 5, 6])("runs on the worker that holds the session; seed %s", async (seed) => {
  await open(seed);
  await worker();
  await worker();
  await worker();
  const handle = await world.start("near", 8, "a");
  const { holder, ranOn } = (await world.run(handle.result())) as { holder: string; ranOn: string[] };
  expect(ranOn).toEqual(Array.from({ length: 8 }, () => holder));
});

test("without that worker, any other runs it", async () => {
  await open(7);
  const first = await worker();
  const handle = await world.start("near-after-kill", null, "a");
  while (!asked) await world.clock.advance(50);
  first.kill();
  const second = await worker();
  await world.signal("a", "killed", 1);
  expect(await world.run(handle.result(), 120_000)).toBe(second.id);
});

test("while somebody of 0.1.0 is alive the preference is not recorded, and the activity runs all the same", async () => {
  await open(8, 1);
  await worker();
  const handle = await world.start("near", 1, "a");
  await world.run(handle.result());
  const events = ((await world.history("a")) ?? []).flatMap((commit) => commit.events);
  const scheduled = events.filter((event) => event.kind === "activity.scheduled" && event.name === "here");
  expect(scheduled).toMatchObject([{ target: { kind: "queue", queue: "default" } }]);
  expect(scheduled[0]).not.toHaveProperty("target.preferWorkerOf");
});

test("bad input: a session of nobody, something that is no session, a local activity with tags, a bad tag", async () => {
  await open(9);
  await worker();
  const handle = await world.start("wrong", null, "a");
  expect(await world.run(handle.result())).toEqual(["invalid_option", "invalid_option", "invalid_option"]);
  const define = (tags: unknown[]) =>
    defineActivity("tagged", { requires: { tags: tags as string[] }, run: () => null });
  expect(() => define(["no spaces"])).toThrow(
    'activity "tagged": requires.tags: tag "no spaces" is not allowed',
  );
  expect(() => defineActivity("t", { requires: { tag: ["x"] } as never, run: () => null })).toThrow("tag");
  const config = workerConfig(
    z.object(workerSettings).parse({ WORKER_ACTIVITIES: "train", WORKER_TAGS: "gpu" }),
  );
  expect(() => refuseUnknownNames(config, app)).toThrow(
    'WORKER_ACTIVITIES and WORKER_TAGS contradict: activity "train" requires eu',
  );
});
