/** T9: an instance whose turns cannot succeed is shown with its reason, is tried on, and holds up nobody. */
import { expect, test } from "vitest";
import { collectApp, defineOrchestration } from "../../shared/definitions/index.ts";
import { sharedPlace } from "../../shared/history/locate.ts";
import { World } from "../support/engine-world.ts";
import { noFaults } from "../support/memory-bus.ts";

const app = collectApp({
  waits: defineOrchestration("waits", { run: (ctx) => ctx.waitForSignal("go") }),
});

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
  // More than a partition hands out at a time.
  for (let n = 0; n < 600; n++) await world.signal("sick", "go", n);
  await world.orchestrator();

  // One in each of the four partitions, at least.
  const ids = Array.from({ length: 20 }, (_, n) => `well-${n}`);
  const wells = await Promise.all(ids.map((id) => world.start("waits", undefined, id)));
  for (const id of ids) await world.signal(id, "go", id);
  expect(await world.run(Promise.all(wells.map((well) => well.result())), 20_000)).toEqual(ids);
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
