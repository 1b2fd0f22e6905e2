/** Sessions come and go by clocks, by hand and by token. */
import { describe, expect, it } from "vitest";
import { installation } from "../../support/processes/installation.ts";
import { until } from "../../support/processes/stack.ts";

const world = installation({ app: "held", env: { WORKER_RESOURCE_ID: "disk-1" }, leases: true });
const { journal, start, result } = world;

it("parks when nobody calls, not while a call runs, and the next call claims anew", async () => {
  await start("idles", null, "idle");
  await world.streams.untilKind("idle", "session.parked");
  await world.client.signal("idle", "again");
  expect(await result("idle")).toEqual({ before: [1, 2], parked: "parked", after: 1, newEpoch: true });
  const kinds = await world.streams.kinds("idle");
  expect(kinds.filter((kind) => kind === "session.parked")).toHaveLength(1);
  expect(kinds).not.toContain("session.lost");
});

it("lazy: claimed by the first call, and not before", async () => {
  await start("lazy", null, "lazy");
  await world.streams.untilKind("lazy", "session.opened");
  await world.client.signal("lazy", "go");
  expect(await result("lazy")).toEqual({ before: "parked", value: 1, after: "active" });
});

it("one id opened twice in one instance is one session", async () => {
  await start("twice", "same-id", "twice");
  expect(await result("twice")).toEqual([1, 2, 3]);
  expect(journal.lines("init same-id")).toHaveLength(1);
});

it("executionTimeout ends a session whatever it does; the holder lets go", async () => {
  await start("keeper", { creationTimeout: "2s", executionTimeout: "3s" }, "mortal");
  const [line = ""] = await journal.until("count mortal");
  const [, id = ""] = line.split(" ");
  await world.streams.untilKind("mortal", "session.lost");
  await world.client.signal("mortal", "end", "late");
  expect(await result("mortal")).toMatchObject({
    last: { code: "session_lost", reason: "execution_timeout" },
  });
  await journal.until(`shutdown ${id}`);
  await until("the lease is given back", () => world.leases.of(id)[0]?.end?.kind === "released");
});

describe("evicted", () => {
  it("by the client: the running call ends with reason evicted", async () => {
    await start("working", { calls: 2, ms: 60_000 }, "evicted");
    const [line = ""] = await journal.until("count evicted");
    const [, id = ""] = line.split(" ");
    await world.client.session(id).evict("the machine is needed");
    const { seen } = await result<{ seen: unknown[] }>("evicted");
    expect(seen[0]).toMatchObject({
      code: "session_lost",
      reason: "evicted",
      message: expect.stringContaining("the machine is needed"),
    });
    expect(seen[1]).toMatchObject({ code: "session_lost", reason: "evicted" });
    await expect(world.client.session(id).evict()).rejects.toMatchObject({ code: "session_unusable" });
  });

  it("by hand on the bus: a session with another policy goes on", async () => {
    await start("working", { calls: 3, ms: 700, onLost: "reclaim" }, "moved");
    const [line = ""] = await journal.until("count moved");
    const [, id = "", workerId = ""] = line.split(" ");
    const body = new TextEncoder().encode('{"v":1,"kind":"evict"}');
    await world.stack.bus.publish(world.stack.names.sessionWork(workerId, id), body);
    const { seen } = await result<{ seen: unknown[] }>("moved");
    expect(seen).toEqual([1, 2, 3]);
    expect(world.leases.of(id)).toHaveLength(2);
  });
});

describe("a token", () => {
  it("leads back to the same resource while it is there", async () => {
    await start("returns", [], "back");
    await world.client.signal("back", "return");
    expect(await result("back")).toEqual({ resourceId: "disk-1", again: "disk-1", value: 1 });
  });

  it("is refused as SessionResourceGone when the resource has left", async () => {
    const env = { WORKER_RESOURCE_ID: "disk-2", WORKER_NODE_ID: "leaver", WORKER_TAGS: "leaver" };
    const other = await world.stack.run("worker", env);
    await start("returns", ["leaver"], "gone");
    await world.streams.untilKind("gone", "session.closed");
    await other.stop();
    await until(
      "it has left",
      async () => !(await world.client.workers.list()).some((worker) => worker.nodeId === "leaver"),
    );
    await world.client.signal("gone", "return");
    expect(await result("gone")).toMatchObject({
      resourceId: "disk-2",
      name: "SessionResourceGone",
      message: expect.stringContaining("disk-2"),
    });
  });
});

describe("children", () => {
  it("use a session of their parent when it is granted, and leave it open", async () => {
    await start("host", { grant: true }, "host");
    expect(await result("host")).toEqual({ mine: 1, theirs: { value: 2, next: 3 }, after: 4 });
  });

  it("are refused without a grant", async () => {
    await start("host", { grant: false }, "miser");
    expect(await result("miser")).toMatchObject({
      mine: 1,
      theirs: { code: "session_unusable", message: expect.stringContaining("not granted") },
      after: 2,
    });
  });
});

it("leaves nothing behind", async () => {
  await world.streams.untilQuiet();
  await until("every lease has ended", () =>
    world.leases.holdings.every((holding) => holding.end !== undefined),
  );
});
