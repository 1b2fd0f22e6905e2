/** The client against a real server, with no engine behind it: the test plays the engine by writing its read model. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { Commit, InstanceSummary } from "../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  connectBus,
  encode,
  ensureTopology,
  Payloads,
  subjects,
} from "../../shared/bus/index.ts";
import { HistoryStore } from "../../shared/history/index.ts";
import { silent, systemRuntime } from "../../shared/runtime/index.ts";
import { Client, defineOrchestration } from "../../shared/sdk/index.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";

const names = subjects("cl");

describe("client", () => {
  let nats: TestNats;
  let bus: Bus;
  let client: Client;

  beforeAll(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, blobBucket: names.blobBucket, announce: silent });
    await ensureTopology(bus, names, { partitions: 4, historyShards: 2, replicas: 1 });
    client = await Client.connect({ url: nats.url, prefix: "cl" });
  });
  afterAll(async () => {
    await client?.close();
    await bus?.close();
    await nats?.stop();
  });

  const inbox = async (id: string) => (await bus.read(names.inboxStream, names.inboxOf(id))) ?? [];
  const text = (body: Uint8Array) => Buffer.from(body).toString();
  const tell = async (id: string, summary: Record<string, unknown>, notify = true) => {
    const value = InstanceSummary.parse({
      v: 1,
      instanceId: id,
      name: "hello",
      execution: 1,
      events: 1,
      updatedAt: 1,
      ...summary,
    });
    await new Bucket(bus, names.bucket("instances")).put(id, encode(value));
    if (notify) bus.send(names.notice(id, "ended"), new Uint8Array());
  };

  it("starts with the input itself as JSON, once per id", async () => {
    const handles = await Promise.all(
      Array.from({ length: 20 }, () => client.start("hello", { name: "Ada" }, { id: "one" })),
    );
    expect(new Set(handles.map((handle) => handle.instanceId))).toEqual(new Set(["one"]));
    const messages = await inbox("one");
    expect(messages).toHaveLength(1);
    expect(messages[0]?.subject).toMatch(/^cl\.inbox\.\d\.one\.start\.hello$/);
    expect(text(messages[0]?.body ?? new Uint8Array())).toBe('{"name":"Ada"}');
  });

  it("needs no input where none is asked for", async () => {
    const plain = defineOrchestration("plain", { run: async (ctx) => ctx.waitForSignal("go") });
    const { instanceId } = await client.start(plain);
    const [message] = await inbox(instanceId);
    expect(message?.body).toHaveLength(0);
    const typed = defineOrchestration("typed", { input: z.string(), run: async () => 1 });
    // @ts-expect-error it must be given where it is asked for
    await expect(client.start(typed)).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("makes an id where none is given", async () => {
    const { instanceId } = await client.start("hello");
    expect(instanceId).toMatch(/^hello-[a-z0-9]{16}$/);
    expect(text((await inbox(instanceId))[0]?.body ?? new Uint8Array())).toBe("");
  });

  it("moves a big input through the object store", async () => {
    const big = "x".repeat(3_000_000);
    await client.start("hello", big, { id: "big" });
    const [message] = await inbox("big");
    expect(message?.body).toHaveLength(0);
    const blob = JSON.parse(message?.headers["Holdfast-Blob"] ?? "null");
    expect(await new Payloads(bus.blobs).unwrap({ blob })).toBe(big);
  });

  it.each([
    [{ url: "" }, 'url ""'],
    [{ url: [] }, "is missing"],
    [{ url: ["nats://127.0.0.1:1", "http://me:secret@x"] }, "http://***@x"],
  ])("names an address that is none: %j", async (options, said) => {
    await expect(Client.connect(options as { url: string })).rejects.toMatchObject({
      name: "HoldfastError",
      code: "invalid_address",
      message: expect.stringContaining(said),
    });
  });

  it("refuses bad input and bad ids before anything is sent", async () => {
    const typed = defineOrchestration("typed", {
      input: z.object({ docs: z.array(z.string()) }),
      run: async () => 1,
    });
    await expect(
      client.start(typed, { docs: [1 as unknown as string] }, { id: "bad" }),
    ).rejects.toMatchObject({
      name: "HoldfastError",
      code: "invalid_input",
      message: expect.stringContaining("docs.0"),
    });
    expect(await inbox("bad")).toEqual([]);
    for (const id of ["a.b", "a*", "a>", "a b", "a\0b", "", "x".repeat(129)]) {
      await expect(client.start("hello", {}, { id })).rejects.toMatchObject({
        code: "invalid_id",
        message: expect.stringContaining("1 to 128 characters"),
      });
      await expect(client.status(id)).rejects.toMatchObject({ code: "invalid_id" });
      await expect(client.signal(id, "go")).rejects.toMatchObject({ code: "invalid_id" });
      await expect(client.result(id)).rejects.toMatchObject({ code: "invalid_id" });
    }
    await expect(client.start("he.llo")).rejects.toMatchObject({ code: "invalid_id" });
    await expect(client.signal("one", "g.o")).rejects.toMatchObject({ code: "invalid_id" });
  });

  it("answers for what nobody ever started", async () => {
    for (const act of [
      () => client.status("ghost"),
      () => client.result("ghost"),
      () => client.cancel("ghost"),
      () => client.terminate("ghost"),
      () => client.history("ghost"),
    ]) {
      await expect(act()).rejects.toMatchObject({ code: "instance_not_found" });
    }
    expect(await client.waitForEnd("ghost", 10)).toBeUndefined();
  });

  it("knows what was accepted and not looked at yet", async () => {
    await client.start("hello", 1, { id: "accepted" });
    expect(await client.status("accepted")).toMatchObject({ status: "pending", name: "hello" });
    await expect(client.result("accepted", { timeout: "30ms" })).rejects.toMatchObject({
      name: "TimeoutError",
      code: "result_timeout",
      details: { status: "pending" },
    });
    await client.cancel("accepted", "changed my mind");
    const [, cancel] = await inbox("accepted");
    expect(text(cancel?.body ?? new Uint8Array())).toBe('{"reason":"changed my mind"}');
  });

  it("waits for the result, told by the notice", async () => {
    const handle = await client.start("hello", 1, { id: "waits" });
    const result = handle.result();
    await tell("waits", { status: "running" });
    await tell("waits", { status: "completed", output: { json: "Hello!" } });
    expect(await result).toBe("Hello!");
    expect(await client.get("waits").result()).toBe("Hello!");
    expect(await handle.status()).toMatchObject({ status: "completed", output: "Hello!" });
  });

  it("gives no output that is not what the definition says", async () => {
    const counted = defineOrchestration("counted", {
      input: z.string(),
      output: z.object({ count: z.number(), unit: z.string().default("items") }),
      run: async () => ({ count: 1, unit: "items" }),
    });
    const right = await client.start(counted, "x", { id: "right" });
    await tell("right", { status: "completed", output: { json: { count: 3 } } });
    expect(await right.result()).toEqual({ count: 3, unit: "items" });
    // As a service of another version would.
    const wrong = await client.start(counted, "x", { id: "wrong" });
    await tell("wrong", { status: "completed", output: { json: { count: "three" } } });
    await expect(wrong.result()).rejects.toMatchObject({
      code: "invalid_output",
      message: expect.stringMatching(/output of counted: count: /),
    });
  });

  it("finds the result also when the notice is lost", async () => {
    const handle = await client.start("hello", 1, { id: "unnoticed" });
    const result = handle.result();
    await tell("unnoticed", { status: "completed", output: { json: 7 } }, false);
    expect(await result).toBe(7);
  });

  it("rebuilds the errors of instances that did not complete", async () => {
    const error = { code: "no_stock", message: "none left", retryable: false, details: { item: 3 } };
    await tell("failed", { status: "failed", error });
    await expect(client.result("failed")).rejects.toMatchObject({ name: "HoldfastError", ...error });
    await tell("cancelled", { status: "cancelled" });
    await expect(client.result("cancelled")).rejects.toMatchObject({
      name: "CancelledError",
      code: "cancelled",
    });
    await tell("terminated", { status: "terminated" });
    await expect(client.result("terminated")).rejects.toMatchObject({ code: "terminated" });
  });

  it("says that an ended instance has ended", async () => {
    await tell("over", { status: "completed", output: { json: 1 } });
    for (const act of [
      () => client.signal("over", "go"),
      () => client.cancel("over"),
      () => client.terminate("over"),
    ]) {
      await expect(act()).rejects.toMatchObject({ code: "instance_ended", details: { status: "completed" } });
    }
    // A signal is on its way before the client knows of the end: an orchestrator puts it among the dead letters.
    const waiting = (await inbox("over")).map(({ subject }) => subject);
    expect(waiting).toEqual([expect.stringMatching(/\.over\.signal\.go$/)]);
  });

  it("takes signals before the start", async () => {
    await client.signal("early", "go", { n: 1 });
    const [message] = await inbox("early");
    expect(message?.subject).toMatch(/\.early\.signal\.go$/);
    expect(text(message?.body ?? new Uint8Array())).toBe('{"n":1}');
    expect(await client.status("early")).toMatchObject({ status: "pending" });
  });

  it("lists, newest first, by what was asked", async () => {
    await tell("list-a", { status: "running", startedAt: 5 }, false);
    await tell("list-b", { status: "failed", startedAt: 9, name: "other" }, false);
    await tell("list-c", { status: "completed", startedAt: 7 }, false);
    const ids = async (options: Parameters<Client["list"]>[0]) =>
      (await client.list({ prefix: "list-", ...options })).map((item) => item.instanceId);
    expect(await ids({})).toEqual(["list-b", "list-c", "list-a"]);
    expect(await ids({ limit: 1 })).toEqual(["list-b"]);
    expect(await ids({ status: ["failed", "running"] })).toEqual(["list-b", "list-a"]);
    expect(await ids({ name: "hello" })).toEqual(["list-c", "list-a"]);
    for (const limit of [-1, 0, 1.5, Number.NaN]) {
      await expect(client.list({ limit })).rejects.toMatchObject({ code: "invalid_option" });
    }
    await expect(client.list({ status: "nope" as "failed" })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("must be one of pending, running"),
    });
  });

  it("refuses a service that counts shards or partitions otherwise, before it makes anything", async () => {
    for (const wrong of [{ historyShards: 4 }, { historyShards: 1 }, { partitions: 8 }]) {
      const options = { partitions: 4, historyShards: 2, replicas: 1, ...wrong };
      await expect(ensureTopology(bus, names, options)).rejects.toMatchObject({ code: "stream_mismatch" });
    }
    expect(await bus.streamNames(names.sharedHistories)).toHaveLength(2);
  });

  it("gives the history as flat events", async () => {
    const store = new HistoryStore({
      bus,
      names,
      layout: "shared",
      maxOwnStreams: 0,
      shards: 2,
      replicas: 1,
      runtime: systemRuntime(),
    });
    const commit = Commit.parse({
      v: 1,
      commitId: "c",
      instanceId: "told",
      execution: 1,
      at: 12,
      inbox: [],
      events: [
        { id: 1, kind: "instance.started", name: "hello", input: { json: null } },
        { id: 2, kind: "instance.completed", output: { json: 1 } },
      ],
    });
    await store.append(await store.place("told"), commit, { startsExecution: true });
    expect(await client.history("told")).toEqual([
      { execution: 1, at: 12, ...commit.events[0] },
      { execution: 1, at: 12, ...commit.events[1] },
    ]);
  });
});
