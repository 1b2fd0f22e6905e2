/** Starts under limits are held by the owner of their instance until their keeper decides (FLOW-4, FLOW-5). */
import { expect, test } from "vitest";
import { DeadLetter, type FlowOptions, flowSignal } from "../../../schemas/index.ts";
import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import { keeperOfKey } from "../../../services/orchestrator/flow/held-starts.ts";
import { decode, encode } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

let runs = 0;
let most = 0;
const job = defineOrchestration("job", {
  async run(ctx, ms: number) {
    await ctx.sleep(ms);
    return ms;
  },
});
const parent = defineOrchestration("parent", { run: (ctx, ms: number) => ctx.child(job, ms) });
const app = collectApp({ job, parent });
const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;

let world: World;
async function open({ seed = 1, faulty = false } = {}): Promise<void> {
  world = new World({ seed, app, faults: faulty ? someFaults : calm });
  await world.prepare();
}
const start = (id: string, ms: number, flow: Omit<FlowOptions, "key"> = { concurrency: 2 }) =>
  world.run(world.client.start("job", ms, { id, flow: { key: "k", ...flow } }));
/** Of a start that may still wait for its keeper: there is no instance yet. */
const result = async (id: string): Promise<unknown> => {
  for (let waitedMs = 0; ; waitedMs += 1_000) {
    try {
      return await world.run(world.client.result(id), 900_000);
    } catch (error) {
      if ((error as { code?: string }).code !== "instance_not_found" || waitedMs > 900_000) throw error;
      await world.clock.advance(1_000);
    }
  }
};
const inboxOf = async (id: string) =>
  (await world.run(world.outside.read(world.names.inboxStream, world.names.inboxOf(id)))) ?? [];

/** Of all jobs: how many ran, and the most at a time, by what their histories say. */
async function count(): Promise<void> {
  const jobs = await world.run(world.client.list({ name: "job", limit: 10_000 }));
  const edges = jobs.flatMap(({ startedAt = 0, endedAt = 0 }) => [
    { at: startedAt, by: 1 },
    { at: endedAt, by: -1 },
  ]);
  edges.sort((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  runs = jobs.length;
  most = edges.reduce((highest, { by }) => Math.max(highest, (now += by)), 0);
}

test("one that waits stays in the inbox, and its owner's successor asks again", async () => {
  await open();
  const first = await world.orchestrator();
  await start("long", 20_000, { concurrency: 1 });
  await start("held", 10, { concurrency: 1 });
  await world.clock.advance(2_000);
  expect(await inboxOf("held"), "no message for the keeper, none acknowledged").toHaveLength(1);
  expect(await inboxOf(keeperOfKey("k"))).toEqual([]);
  first.kill();
  await world.orchestrator();
  expect(await result("held")).toBe(10);
  await count();
  expect([runs, most]).toEqual([2, 1]);
  await world.clock.advance(120_000);
  expect(await inboxOf("held")).toEqual([]);
});

test("more of them than a partition may hold wait in the keeper's history, and are started by messages", async () => {
  await open();
  await world.orchestrator();
  const ids = Array.from({ length: 700 }, (_, i) => `many-${i}`);
  await world.run(
    Promise.all(ids.map((id) => world.client.start("job", 5, { id, flow: { key: "k", concurrency: 20 } }))),
  );
  for (const id of ids) expect(await result(id)).toBe(5);
  await count();
  expect(runs).toBe(700);
  expect(most).toBeLessThanOrEqual(20);
});

const points: FaultPoint[] = ["turn.before_append", "turn.after_append", "effects.half_published"];
test.each(points.flatMap((point) => [1, 3, 6].map((at) => [point, at] as const)))(
  "owners of keepers and of held starts die at %s, %i, and plain messages get lost: each runs once",
  async (point, at) => {
    await open({ seed: at, faulty: true });
    const members = [await world.orchestrator({ point, count: at }), await world.orchestrator()];
    const ids = Array.from({ length: 8 }, (_, i) => `j${i}`);
    for (const id of ids) {
      while (
        !(await start(id, 700).then(
          () => true,
          () => false,
        ))
      );
    }
    await world.clock.advance(1_500);
    for (const member of members) {
      member.kill();
      await world.orchestrator();
      await world.clock.advance(3_000);
    }
    for (const id of ids) expect(await result(id)).toBe(700);
    await count();
    expect(runs).toBe(8);
    expect(most).toBeLessThanOrEqual(2);
  },
);

test("by plain NATS: the limits are a header of the start, and wrong ones are a dead letter that says why", async () => {
  await open();
  await world.orchestrator();
  const publish = (id: string, flow: object) =>
    world.run(
      world.outside.publish(world.names.start(id, "job"), encode(3_000), {
        headers: { "Holdfast-Flow": JSON.stringify(flow) },
      }),
    );
  await publish("one", { key: "k", singleton: true });
  await world.clock.advance(1_000);
  await publish("two", { key: "k", singleton: true });
  await publish("none", { key: "k", singleton: true, concurrency: 2 });
  expect(await result("one")).toBe(3_000);
  await expect(result("two")).rejects.toMatchObject({ code: "start_rejected" });
  const [letter] = (await world.run(world.outside.read(world.names.deadStream, "dead.>"))) ?? [];
  const decoded = letter && decode(DeadLetter, letter.body);
  expect(decoded?.kind === "ok" && decoded.value).toMatchObject({
    id: "none",
    reason: { code: "malformed_message", message: expect.stringContaining("both singleton and concurrency") },
  });
});

test("a request in the keeper's inbox, as clients of an earlier build send it, is a start too", async () => {
  await open();
  await world.orchestrator();
  const keeper = keeperOfKey("k");
  const request = {
    kind: "start",
    instanceId: "old",
    orchestration: "job",
    input: 10,
    flow: { key: "k", concurrency: 1 },
  };
  await world.run(world.outside.publish(world.names.start(keeper, "holdfast-flow"), encode({})));
  await world.run(world.outside.publish(world.names.signal(keeper, flowSignal), encode(request)));
  expect(await result("old")).toBe(10);
});

test("a start that its keeper left out does not run, also if the word about it is lost", async () => {
  await open({ faulty: true, seed: 7 });
  await world.orchestrator();
  await world.orchestrator();
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) {
    while (
      !(await start(id, 20_000, { singleton: true }).then(
        () => true,
        () => false,
      ))
    );
  }
  const ends: string[] = [];
  for (const id of ids) ends.push(await result(id).then(String, (error) => error.code));
  expect(ends.sort()).toEqual(["20000", "start_rejected", "start_rejected", "start_rejected"]);
  await world.clock.advance(120_000);
  for (const id of ids) expect(await inboxOf(id)).toEqual([]);
});

test.each(["cancel", "terminate"] as const)(
  "FLOW-6: one that waits ends by %s before its code runs, and leaves the line",
  async (verb) => {
    await open();
    const first = await world.orchestrator();
    const one = { concurrency: { limit: 1, onBusy: "replace" as const } };
    await start("runs", 20_000, one);
    await start("waits", 10, one);
    await world.clock.advance(2_000);
    await world.run(world.client[verb]("waits", "not wanted"));
    await expect(result("waits")).rejects.toThrow("not wanted");
    expect(await world.run(world.client.status("waits"))).toMatchObject({
      status: verb === "cancel" ? "cancelled" : "terminated",
      events: 2,
    });
    await expect(world.run(world.client.query("waits", "any"))).rejects.toThrow("ended before its code ran");
    // Nobody is left for the next one to replace; whoever takes over finds the same.
    first.kill();
    await world.orchestrator();
    await start("next", 10, one);
    expect(await result("next")).toBe(10);
    expect(await result("runs")).toBe(20_000);
    await world.clock.advance(120_000);
    expect(await inboxOf("waits")).toEqual([]);
  },
);

test.each(points)(
  "FLOW-6: whoever takes it over, and dies at %s while it ends, it never runs",
  async (point) => {
    await open();
    const first = await world.orchestrator();
    await start("runs", 20_000, { concurrency: 1 });
    await start("waits", 10, { concurrency: 1 });
    await start("behind", 10, { concurrency: 1 });
    await world.clock.advance(2_000);
    first.kill();
    await world.run(world.client.cancel("waits"));
    await world.orchestrator({ point, count: 1 });
    await world.clock.advance(20_000);
    await world.orchestrator();
    await expect(result("waits")).rejects.toMatchObject({ code: "cancelled" });
    expect(await result("behind")).toBe(10);
    const history = await world.run(world.client.history("waits"));
    expect(history.map(({ kind }) => kind)).toEqual(["instance.started", "instance.cancelled"]);
  },
);

/** An instance that begins by a held start, and whose owner dies when its first commit is stored. */
async function beginAndDie(id: string): Promise<void> {
  const owner = await world.orchestrator();
  const publish = owner.bus.publish.bind(owner.bus);
  owner.bus.publish = async (subject, body, options) => {
    const outcome = await publish(subject, body, options);
    if (subject.startsWith("history.") && subject.endsWith(`.${id}`)) owner.kill();
    return outcome;
  };
  await world.run(world.client.start("parent", 10, { id, flow: { key: "k", concurrency: 2 } }));
  await world.clock.runUntil(() => owner.bus.killed, 60_000);
}

test("one that began, and whose owner died before its effects were sent, goes on although another start comes", async () => {
  await open();
  await beginAndDie("a");
  // As the keeper's, which publishes its last commit's effects a second time.
  await world.run(world.client.start("parent", 10, { id: "a" }));
  await world.orchestrator();
  expect(await result("a")).toBe(10);
});

test.each(["cancel", "terminate"] as const)(
  "FLOW-6: one that began, and whose owner died before its effects were sent, ends by %s",
  async (verb) => {
    await open();
    await beginAndDie("a");
    await world.run(world.client[verb]("a", "not wanted"));
    await world.orchestrator();
    await expect(result("a")).rejects.toThrow("not wanted");
    await world.clock.advance(120_000);
    expect(await inboxOf("a")).toEqual([]);
  },
);
