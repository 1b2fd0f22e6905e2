/**
 * T9: an instance whose turns cannot succeed is shown with its reason, is tried again, and delays no other
 * instance.
 */
import { expect, test } from "vitest";
import { Bucket } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { sharedPlace } from "../../../shared/history/locate.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const app = collectApp({
  waits: defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("go") }),
});

/** More than a partition hands out at a time. */
const many = 600;

async function wells(world: World): Promise<{ ids: string[]; results: Promise<unknown[]> }> {
  // One in each of the four partitions, at least.
  const ids = Array.from({ length: 20 }, (_, n) => `well-${n}`);
  const handles = await Promise.all(ids.map((id) => world.start("waits", undefined, id)));
  for (const id of ids) await world.signal(id, "go", id);
  return { ids, results: Promise.all(handles.map((handle) => handle.result())) };
}

const parkedList = async (world: World): Promise<string[]> => {
  const keys: string[] = [];
  const settings = new Bucket(world.outside, world.names.bucket("settings"));
  const read = async () => {
    for await (const { key } of settings.entries("parked.*")) keys.push(key);
  };
  await world.run(read());
  return keys;
};

test.each([false, true])(
  "a damaged history, repaired by hand; restarted meanwhile: %s",
  async (restarted) => {
    const world = new World({ seed: 7, app, faults: noFaults, layout: "shared" });
    await world.prepare();
    const first = await world.orchestrator();
    const handles = new Map<string, Awaited<ReturnType<World["start"]>>>();
    for (const id of ["sick", "well"]) handles.set(id, await world.start("waits", undefined, id));
    first.kill();

    const { stream, subject } = sharedPlace(world.names, "sick", 2);
    const damage = await world.run(world.outside.publish(subject, new TextEncoder().encode("{nonsense")));
    const second = await world.orchestrator();
    for (const id of ["sick", "well"]) await world.signal(id, "go", `heard by ${id}`);
    expect(await world.run(handles.get("well")?.result() ?? Promise.reject())).toBe("heard by well");

    await world.clock.advance(30_000);
    const status = await world.run(world.client.status("sick"));
    expect(status).toMatchObject({ name: "waits", status: "parked", error: { code: "history_unreadable" } });
    expect(world.count("instance.parked")).toBe(1);

    if (restarted) second.kill();
    if (damage.kind === "stored") await world.run(world.outside.deleteMessage(stream, damage.seq));
    if (restarted) await world.orchestrator();
    expect(await world.run(handles.get("sick")?.result() ?? Promise.reject(), 600_000)).toBe("heard by sick");
    expect(await world.run(world.client.status("sick"))).toMatchObject({ status: "completed" });
  },
);

test("what waits for it in hundreds takes no room from the others of its partition", async () => {
  const world = new World({ seed: 8, app, faults: noFaults, layout: "shared" });
  await world.prepare();
  const first = await world.orchestrator();
  const sick = await world.start("waits", undefined, "sick");
  first.kill();
  const { stream, subject } = sharedPlace(world.names, "sick", 2);
  const damage = await world.run(world.outside.publish(subject, new TextEncoder().encode("{nonsense")));
  for (let n = 0; n < many; n++) await world.signal("sick", "go", n);
  await world.orchestrator();

  const { ids, results } = await wells(world);
  expect(await world.run(results, 20_000)).toEqual(ids);
  // Redelivered to the same owner, it still takes none.
  await world.clock.advance(130_000);
  expect(world.count("instance.parked")).toBe(1);
  const late = await world.start("waits", undefined, "well-late");
  await world.signal("well-late", "go", "late");
  expect(await world.run(late.result(), 5_000)).toBe("late");

  if (damage.kind === "stored") await world.run(world.outside.deleteMessage(stream, damage.seq));
  expect(await world.run(sick.result(), 600_000), "in order").toBe(0);
  await world.clock.advance(130_000);
  const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
  expect(inbox?.messages, "nothing is left").toBe(0);
});

test.each(["before its turn", "during its turn"])(
  "one stream for which nobody answers, silent %s, holds up nobody, and goes on when it answers",
  async (when) => {
    const world = new World({ seed: 8, app, faults: { ...noFaults, latencyMs: [1, 1] }, ownAfterMs: 0 });
    await world.prepare();
    const first = await world.orchestrator();
    const sick = await world.start("waits", undefined, "sick");
    await world.clock.advance(1_000);
    world.broker.silent.add(world.names.ownHistoryStream("sick"));
    if (when === "before its turn") {
      first.kill();
      await world.orchestrator();
    }
    for (let n = 0; n < many; n++) await world.signal("sick", "go", n);
    const { ids, results } = await wells(world);
    expect(await world.run(results, 60_000)).toEqual(ids);

    await world.clock.advance(130_000);
    expect(world.count("instance.parked")).toBe(1);
    expect(await world.run(world.client.status("sick"))).toMatchObject({
      status: "parked",
      error: { code: "nats_unavailable" },
    });
    const late = await world.start("waits", undefined, "well-late");
    await world.signal("well-late", "go", "late");
    expect(await world.run(late.result(), 5_000)).toBe("late");

    world.broker.silent.clear();
    expect(await world.run(sick.result(), 15_000), "in order").toBe(0);
    await world.clock.advance(130_000);
    expect(await world.run(world.client.status("sick"))).toMatchObject({ status: "completed" });
    expect(await parkedList(world)).toEqual([]);
    const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
    expect(inbox?.messages, "nothing is left").toBe(0);
  },
);

test("shown as parked by an owner that died, it is shown as it is when another's turn succeeds", async () => {
  const world = new World({ seed: 8, app, faults: noFaults, ownAfterMs: 0 });
  await world.prepare();
  const first = await world.orchestrator();
  await world.orchestrator();
  const ids = Array.from({ length: 8 }, (_, n) => `sick-${n}`);
  for (const id of ids) await world.start("waits", undefined, id);
  await world.clock.advance(1_000);
  for (const id of ids) world.broker.silent.add(world.names.ownHistoryStream(id));
  for (const id of ids) await world.signal(id, "other", 1);
  await world.clock.advance(60_000);
  expect((await parkedList(world)).length).toBe(ids.length);
  first.kill();
  world.broker.silent.clear();
  await world.clock.advance(60_000);
  const list = await world.run(world.client.list());
  expect(list.map(({ status }) => status)).toEqual(ids.map(() => "running"));
  expect(await parkedList(world)).toEqual([]);
});

test.each([
  "is down",
  "does not answer",
  // Its partitions are kept then.
  "does not answer but for leases",
])("while the bus %s nobody is set aside", async (how) => {
  const world = new World({ seed: 9, app, faults: { ...noFaults, latencyMs: [1, 1] } });
  await world.prepare();
  await world.orchestrator();
  const ids = Array.from({ length: 40 }, (_, n) => `i${n}`);
  const handles = await Promise.all(ids.map((id) => world.start("waits", undefined, id)));
  await world.clock.advance(1_000);
  for (const id of ids) await world.signal(id, "go", id);
  // In the midst of their turns.
  if (how === "is down") world.broker.stop();
  else for (const stream of world.broker.streams.keys()) world.broker.silent.add(stream);
  if (how === "does not answer but for leases") world.broker.silent.delete("KV_leases");
  await world.clock.advance(180_000);
  if (how === "is down") world.broker.start();
  else world.broker.silent.clear();
  const results = Promise.all(handles.map((handle) => handle.result()));
  expect(await world.run(results, 60_000)).toEqual(ids);
  expect(world.count("instance.parked")).toBe(0);
});

test("who cannot be told that nobody is there is no instance", async () => {
  const world = new World({ seed: 10, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  const ended = await world.start("waits", undefined, "ended");
  await world.signal("ended", "go", "the end");
  expect(await world.run(ended.result())).toBe("the end");
  world.broker.silent.add(world.names.deadStream);
  await world.signal("ended", "go", "too late");
  await world.run(world.outside.publish(world.names.verb("nobody", "cancel"), new Uint8Array()));
  await world.clock.advance(90_000);
  expect((await parkedList(world)).sort()).toEqual(["parked.ended", "parked.nobody"]);
  expect(await world.run(world.client.status("ended")), "an end stays an end").toMatchObject({
    status: "completed",
  });
  world.broker.silent.clear();
  await world.clock.advance(90_000);
  expect(await parkedList(world)).toEqual([]);
  expect((await world.run(world.client.list())).map(({ instanceId }) => instanceId)).toEqual(["ended"]);
});
