/**
 * Sessions that cannot be opened are refused with a reason: wrong ones at once, others when no worker claimed
 * them in time.
 */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { bucketSubject, leaseKeys } from "../../../shared/bus/index.ts";
import { installation } from "../../support/processes/installation.ts";
import { until } from "../../support/processes/stack.ts";

const others = fileURLToPath(new URL("../../apps/held-others.ts", import.meta.url));

const world = installation({ app: "held", env: { WORKER_MAX_SESSIONS: "2", WORKER_RESOURCES: "vram=8" } });
const { journal, start } = world;

let serial = 0;
const opens = async (input: Record<string, unknown>) => {
  const handle = await start("opens", input, `opens-${++serial}`);
  const outcome = await handle.result({ timeout: "30s" });
  await world.streams.checkEnded([handle.instanceId]);
  return outcome as { opened?: string; code: string; message: string; name: string };
};

describe("wrong where it is written", () => {
  it.each([
    ["config", { what: "speaker", config: { greeting: 7 } }, "invalid_config", /greeting/],
    ["no config", { what: "speaker" }, "invalid_config", /speaker/],
    ["id too long", { what: "counter", id: "x".repeat(129) }, "invalid_id", /1 to 128/],
    ["id with a dot", { what: "counter", id: "a.b" }, "invalid_id", /1 to 128/],
    ["lease of 1.5 s", { what: "counter", leaseTtl: "1500ms" }, "invalid_option", /leaseTtl/],
    [
      "contradicting clocks",
      { what: "counter", creationTimeout: "30s", executionTimeout: "10s" },
      "invalid_option",
      /executionTimeout.*creationTimeout/,
    ],
    ["no attempt at all", { what: "counter", maxInitAttempts: 0 }, "invalid_option", /maxInitAttempts/],
    ["half a retry", { what: "bare", recovery: { maxAutoRetries: 0.5 } }, "invalid_option", /maxAutoRetries/],
    ["restore without it", { what: "counter", onLost: "restore" }, "invalid_option", /restore/],
  ])("%s", async (_what, input, code, message) => {
    expect(await opens(input)).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it("an id that belongs to another instance", async () => {
    await start("keeper", { id: "theirs" }, "owner");
    await journal.until("count theirs");
    expect(await opens({ what: "counter", id: "theirs" })).toMatchObject({
      code: "session_id_taken",
      message: expect.stringContaining("theirs"),
    });
    await world.client.signal("owner", "end", "bye");
    expect(await world.client.result("owner", { timeout: "20s" })).toMatchObject({ word: "bye", last: 2 });
  });
});

describe("defect 38: an id is free again", () => {
  it("at once when its session is closed, for anybody, as often as they like", async () => {
    for (let n = 0; n < 4; n++) {
      expect(await opens({ what: "counter", id: "again" })).toMatchObject({ opened: "again" });
    }
    const epochs = (await world.client.sessions.describe("again")).record.owners;
    expect(epochs.length).toBeGreaterThan(0);
  });

  it("as soon as its loss is recorded, while the instance that lost it goes on", async () => {
    await start("keeper", { id: "dropped" }, "loser");
    await journal.until("count dropped");
    await world.client.session("dropped").evict("wanted by somebody else");
    await world.streams.untilKind("loser", "session.lost");
    await until("the loss is in the register", async () => {
      const { record } = await world.client.sessions.describe("dropped");
      return record.phase === "lost";
    });
    expect(await opens({ what: "counter", id: "dropped" })).toMatchObject({ opened: "dropped" });
    await world.client.signal("loser", "end", "bye");
    expect(await world.client.result("loser", { timeout: "20s" })).toMatchObject({
      word: "bye",
      last: { code: "session_lost", reason: "evicted" },
    });
  });

  it("also where only its leases are remembered", async () => {
    const tombstone = { headers: { "KV-Operation": "PURGE" }, ttlMs: 60_000 };
    for (const attachment of [1, 2, 5]) {
      const key = leaseKeys.session("spent", attachment);
      const subject = bucketSubject(world.stack.names.bucket("leases"), key);
      await world.stack.bus.publish(subject, new Uint8Array(), tombstone);
    }
    const { info } = (await opens({ what: "counter", id: "spent" })) as never as {
      info: { attachment: number };
    };
    expect(info.attachment).toBeGreaterThan(5);
  });
});

describe("nobody came in time, and why", () => {
  const timeout = { name: "SessionCreationTimeout", code: "session_creation_timeout" };

  it("no worker has the type; one that has it gets the next claim, and never one it does not know", async () => {
    expect(await opens({ what: "unserved", creationTimeout: "1s" })).toMatchObject({
      ...timeout,
      message: expect.stringContaining("no worker serves session type unserved"),
    });
    const newer = await world.stack.run("worker", { HOLDFAST_APP: others, LOG_LEVEL: "debug" });
    expect(await opens({ what: "unserved" })).toHaveProperty("opened");
    for (let i = 0; i < 6; i++) expect(await opens({ what: "counter" })).toHaveProperty("opened");
    expect(newer.log()).toContain('"type":"unserved"');
    expect(newer.log()).not.toContain('"type":"counter"');
    expect(world.stack.of("worker")[0]?.log()).not.toContain('"type":"unserved"');
    await newer.stop();
  });

  it("no worker has the tag", async () => {
    expect(
      await opens({ what: "counter", creationTimeout: "1s", placement: { tags: ["gpu"] } }),
    ).toMatchObject({
      ...timeout,
      message: expect.stringContaining("no worker with tag gpu"),
    });
  });

  it("is still explained when its instance is over", async () => {
    const placement = { tags: ["gpu"] };
    expect(await opens({ what: "counter", id: "tried", creationTimeout: "1s", placement })).toMatchObject(
      timeout,
    );
    const { record, explanation } = await world.client.sessions.describe("tried");
    expect(record.phase).toBe("failed");
    expect(explanation.join()).toContain("no worker with tag gpu");
  });

  it("no worker has the resources", async () => {
    const placement = { resources: { vram: 24 } };
    expect(await opens({ what: "counter", creationTimeout: "1s", placement })).toMatchObject({
      ...timeout,
      message: expect.stringContaining("no worker has 24 vram (8 at most)"),
    });
    expect(await opens({ what: "counter", placement: { resources: { vram: 8 } } })).toHaveProperty("opened");
  });

  it("no worker runs the build", async () => {
    expect(
      await opens({ what: "counter", creationTimeout: "1s", placement: { buildId: "v9" } }),
    ).toMatchObject({
      ...timeout,
      message: expect.stringContaining("v9"),
    });
  });

  it("all workers are full", async () => {
    for (const id of ["full-1", "full-2"]) {
      await start("keeper", {}, id);
      await journal.until(`count ${id}`);
    }
    expect(await opens({ what: "counter", creationTimeout: "1s" })).toMatchObject({
      ...timeout,
      message: expect.stringContaining("at capacity (2 of 2)"),
    });
    for (const id of ["full-1", "full-2"]) {
      await world.client.signal(id, "end", "room");
      expect(await world.client.result(id, { timeout: "20s" })).toMatchObject({ last: 2 });
    }
    await world.streams.untilQuiet();
  });
});
