/** The endpoints with nothing but requests, on a real server; the test plays the engine. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InstanceSummary } from "../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  connectBus,
  encode,
  ensureTopology,
  type MicroService,
  Payloads,
  subjects,
} from "../../shared/bus/index.ts";
import { startEndpoints } from "../../shared/endpoints/index.ts";
import { silent, systemRuntime } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";

const names = subjects();

describe("endpoints", () => {
  let nats: TestNats;
  let bus: Bus;
  let caller: Bus;
  let service: MicroService;

  beforeAll(async () => {
    nats = await startNats();
    [bus, caller] = await Promise.all([
      connectBus({ url: nats.url, announce: silent }),
      connectBus({ url: nats.url, announce: silent }),
    ]);
    await ensureTopology(bus, names, { partitions: 2, historyShards: 1, replicas: 1 });
    service = await startEndpoints(bus, new Client({ bus, names }), {
      names,
      runtime: systemRuntime(),
      version: "1.2.3",
      orchestrations: () => ["hello", "steps"],
    });
  });
  afterAll(async () => {
    await service?.stop();
    await caller?.close();
    await bus?.close();
    await nats?.stop();
  });

  const ask = async (subject: string, body: unknown = undefined, headers: Record<string, string> = {}) => {
    const bytes =
      typeof body === "string" ? Buffer.from(body) : body === undefined ? Buffer.from("") : encode(body);
    const reply = await caller.request(subject, bytes, { timeoutMs: 5_000, headers });
    if (reply.kind !== "reply") throw new Error(reply.kind);
    return { body: JSON.parse(Buffer.from(reply.body).toString()), headers: reply.headers };
  };
  const tell = (id: string, summary: Record<string, unknown>) =>
    new Bucket(bus, names.bucket("instances")).put(
      id,
      encode(
        InstanceSummary.parse({ v: 1, instanceId: id, execution: 1, events: 1, updatedAt: 1, ...summary }),
      ),
    );

  it("starts, with an id of one's own or a new one", async () => {
    expect((await ask("start.hello", { name: "x" }, { "Holdfast-Id": "mine" })).body).toEqual({
      ok: true,
      instanceId: "mine",
    });
    const made = await ask("start.hello");
    expect(made.body).toEqual({ ok: true, instanceId: expect.stringMatching(/^hello-/) });
    expect(await bus.read(names.inboxStream, names.inboxOf("mine"))).toHaveLength(1);
  });

  it("starts under limits and after a delay", async () => {
    const flow = { key: "disk", concurrency: { limit: 2, onBusy: "reject" } };
    const headers = { "Holdfast-Id": "limited", "Holdfast-Flow": JSON.stringify(flow) };
    expect((await ask("start.hello", { name: "x" }, headers)).body).toEqual({
      ok: true,
      instanceId: "limited",
    });
    const [limited] = (await bus.read(names.inboxStream, names.inboxOf("limited"))) ?? [];
    expect(JSON.parse(limited?.headers["Holdfast-Flow"] ?? "null")).toEqual(flow);
    const late = { "Holdfast-Id": "late", "Holdfast-Delay": "1h" };
    expect((await ask("start.hello", {}, late)).body).toEqual({ ok: true, instanceId: "late" });
    expect(await bus.read(names.inboxStream, names.inboxOf("late"))).toHaveLength(0);
    expect(await bus.read(names.timersStream, names.delayedStart("late"))).toHaveLength(1);
  });

  it("starts with an input that lies in the object store", async () => {
    const payload = await new Payloads(bus.blobs, { inlineBytes: 1 }).wrap({ name: "big" }, "stored");
    const blob = JSON.stringify("blob" in payload ? payload.blob : undefined);
    const headers = { "Holdfast-Id": "stored", "Holdfast-Blob": blob };
    expect((await ask("start.hello", undefined, headers)).body).toEqual({ ok: true, instanceId: "stored" });
    const [message] = (await bus.read(names.inboxStream, names.inboxOf("stored"))) ?? [];
    expect(message?.headers).toMatchObject({ "Holdfast-Blob": blob });
    expect(message?.body).toHaveLength(0);
    for (const wrong of ["{nonsense", '{"key":1}']) {
      expect((await ask("start.hello", undefined, { "Holdfast-Blob": wrong })).body).toMatchObject({
        ok: false,
        error: { code: "invalid_header", message: expect.stringContaining("Holdfast-Blob") },
      });
    }
  });

  it("tells the status and waits for the result", async () => {
    await tell("run", { status: "running", name: "hello" });
    expect((await ask("status.run")).body).toMatchObject({ ok: true, instanceId: "run", status: "running" });
    expect((await ask("result.run", undefined, { "Holdfast-Wait": "20ms" })).body).toMatchObject({
      ok: true,
      status: "running",
    });
    const waiting = ask("result.run");
    await tell("run", { status: "completed", output: { json: [1] } });
    bus.send(names.notice("run", "ended"), new Uint8Array());
    expect((await waiting).body).toMatchObject({ ok: true, status: "completed", output: [1] });
  });

  it("gives a failed instance's error without its stack", async () => {
    const error = { code: "boom", message: "it broke", retryable: false, stack: "at secret.ts" };
    await tell("broke", { status: "failed", error: { ...error, cause: error } });
    const { body } = await ask("result.broke");
    expect(body).toMatchObject({ ok: true, status: "failed", error: { code: "boom", message: "it broke" } });
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  it.each([
    ["start.nope", undefined, {}, "unknown_orchestration"],
    ["start.hello", "{not json", {}, "invalid_json"],
    ["start.hello", {}, { "Holdfast-Id": "a b" }, "invalid_id"],
    ["start.hello", {}, { "Holdfast-Delay": "-5s" }, "invalid_duration"],
    ["start.hello", {}, { "Holdfast-Flow": "{nope" }, "invalid_header"],
    ["start.hello", {}, { "Holdfast-Flow": '{"key":"k","concurrency":0}' }, "invalid_option"],
    ["start.hello", {}, { "Holdfast-Flow": '{"key":"k","singelton":true}' }, "invalid_option"],
    [
      "start.hello",
      {},
      { "Holdfast-Flow": `{"key":"${"x".repeat(257)}","concurrency":1}` },
      "invalid_option",
    ],
    ["status.ghost", undefined, {}, "instance_not_found"],
    ["result.ghost", undefined, {}, "instance_not_found"],
    ["result.mine", undefined, { "Holdfast-Wait": "soon" }, "invalid_duration"],
  ])("refuses %s %s %o", async (subject, body, headers, code) => {
    const reply = await ask(subject, body, headers);
    expect(reply.body).toEqual({ ok: false, error: { code, message: expect.any(String) } });
    expect(reply.headers["Nats-Service-Error"]).toBe(code);
  });

  it("names what exists", async () => {
    expect((await ask("start.nope")).body.error.message).toMatch(/there are: hello, steps$/);
  });

  it.each(["result", "status"])("%s says where a value lies that is too big for a message", async (verb) => {
    const output = await new Payloads(bus.blobs).wrap("x".repeat(2_000_000), "huge");
    await tell("huge", { status: "completed", output });
    const { body } = await ask(`${verb}.huge`);
    const lies = { key: expect.stringMatching(/^huge\//), bytes: 2_000_002, sha256: expect.any(String) };
    expect(body).toMatchObject({ ok: true, status: "completed", leftOut: { output: lies } });
    expect(body).not.toHaveProperty("output");
  });

  it("leaves out what was said on the way where an answer would be too big with it", async () => {
    const payloads = new Payloads(bus.blobs);
    const [output, customStatus] = await Promise.all(
      ["o", "s"].map((letter) => payloads.wrap(letter.repeat(700_000), "two")),
    );
    await tell("two", { status: "completed", output, customStatus });
    const { body } = await ask("result.two");
    expect(body.output).toHaveLength(700_000);
    expect(body).not.toHaveProperty("customStatus");
  });

  it("leaves the input out where the answer would be too big with it", async () => {
    const input = await new Payloads(bus.blobs).wrap("x".repeat(2_000_000), "fed");
    await tell("fed", { status: "completed", input, output: { json: "small" } });
    const { body } = await ask("result.fed");
    expect(body).toMatchObject({ ok: true, status: "completed", output: "small" });
    expect(body).not.toHaveProperty("input");
  });

  it("is a micro service", async () => {
    const { body } = await ask("$SRV.INFO.holdfast");
    expect(body).toMatchObject({ name: "holdfast", version: "1.2.3" });
    expect(body.endpoints.map((endpoint: { subject: string }) => endpoint.subject)).toEqual([
      "start.*",
      "status.*",
      "result.*",
      "schedule.*",
      "update.*.*",
    ]);
  });
});
