import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  eventually,
  hands,
  json,
  names,
  startGateway,
  type TestGateway,
  writeHistory,
} from "../../support/gateway/gateway.ts";
import type { TestNats } from "../../support/nats/nats-server.ts";
import { startServer } from "../../support/nats/secured-nats.ts";

let nats: TestNats;
let gateway: TestGateway;
let put: ReturnType<typeof hands>;

beforeAll(async () => {
  nats = await startServer();
  gateway = await startGateway(nats.url);
  put = hands(gateway.bus);
});
afterAll(async () => {
  await gateway?.stop();
  await nats?.stop();
});

const ids = (body: Record<string, unknown>) =>
  (body.rows as { instanceId: string }[]).map((row) => row.instanceId);

describe("orchestrations over HTTP", () => {
  it("starts one: what is in the inbox is what any NATS client would have sent", async () => {
    const response = await gateway.post("/api/orchestrations/greet", {
      id: "start-1",
      input: { who: "you" },
    });
    expect(response.status).toBe(202);
    expect(await json(response)).toEqual({ ok: true, instanceId: "start-1" });
    const stored = (await gateway.bus.read(names.inboxStream, "inbox.*.start-1.>")) ?? [];
    expect(stored).toHaveLength(1);
    expect(stored[0]?.subject).toMatch(/^inbox\.\d+\.start-1\.start\.greet$/);
    expect(JSON.parse(Buffer.from(stored[0]?.body ?? []).toString())).toEqual({ who: "you" });
  });

  it("takes a start without an input and a signal without a payload", async () => {
    expect((await gateway.post("/api/orchestrations/greet", { id: "bare" })).status).toBe(202);
    expect((await gateway.post("/api/instances/bare/signal/go", {})).status).toBe(202);
  });

  it("starts under limits and after a delay, and refuses what is none", async () => {
    const flow = { key: "disk", rate: { limit: 1, per: "1s" } };
    const start = (more: object) => gateway.post("/api/orchestrations/greet", { id: "limited", ...more });
    expect((await start({ input: 1, flow })).status).toBe(202);
    const [limited] = (await gateway.bus.read(names.inboxStream, "inbox.*.limited.start.greet")) ?? [];
    expect(JSON.parse(limited?.headers["Holdfast-Flow"] ?? "null")).toEqual(flow);
    expect((await start({ id: "late", delay: "1h" })).status).toBe(202);
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.late.>")).toHaveLength(0);
    for (const [wrong, named] of [
      [{ flow: { key: "k", concurrency: 0 } }, "concurrency"],
      [{ flow: { key: "x".repeat(257), concurrency: 1 } }, "key"],
      [{ flow: { key: "k", singleton: true, concurrency: 1 } }, "both singleton and concurrency"],
      [{ flow: { key: "k", singelton: true } }, "singelton"],
      [{ delay: -5 }, "delay"],
      [{ delay: "-5s" }, "delay"],
    ] as const) {
      const response = await start(wrong);
      expect([response.status, JSON.stringify(await json(response))]).toEqual([
        400,
        expect.stringContaining(named),
      ]);
    }
  });

  it("starts once when asked twice with one id", async () => {
    for (let i = 0; i < 2; i++) await gateway.post("/api/orchestrations/greet", { id: "twice", input: 1 });
    expect(await gateway.bus.read(names.inboxStream, "inbox.*.twice.>")).toHaveLength(1);
  });

  it("makes an id where none is given", async () => {
    const body = await json(await gateway.post("/api/orchestrations/greet", { input: null }));
    expect(body.instanceId).toMatch(/^greet-[a-z0-9]{16}$/);
  });

  it("starts one again with its input under another id, and says why it cannot", async () => {
    const failed = { instanceId: "once-failed", name: "greet", status: "failed" as const };
    await put.instance({ ...failed, input: { json: { who: "Ada" } } });
    const again = await gateway.post("/api/instances/once-failed/start-again", {});
    expect(again.status).toBe(202);
    const { instanceId } = await json(again);
    expect(instanceId).not.toBe("once-failed");
    const stored = (await gateway.bus.read(names.inboxStream, `inbox.*.${instanceId}.>`)) ?? [];
    expect(stored[0]?.subject).toMatch(/\.start\.greet$/);
    expect(JSON.parse(Buffer.from(stored[0]?.body ?? []).toString())).toEqual({ who: "Ada" });
    const same = await gateway.post("/api/instances/once-failed/start-again", { id: "once-failed" });
    expect(same.status).toBe(400);
    expect((await gateway.post("/api/instances/ghost/start-again", {})).status).toBe(404);
  });

  it("lists latest first, filters, and pages by a cursor that new rows do not shift", async () => {
    const base = 1_700_000_000_000;
    for (let i = 0; i < 5; i++) {
      await put.instance({
        instanceId: `page-${i}`,
        name: i % 2 ? "odd" : "even",
        status: i === 3 ? "failed" : "completed",
        startedAt: base + i,
        ...(i === 3 ? { error: { code: "boom", message: "the kettle exploded", retryable: false } } : {}),
      });
    }
    const list = (query: string) => gateway.get(`/api/instances?prefix=page-&${query}`).then(json);
    await eventually(async () => (await list("")).matching === 5, "five rows");
    expect(ids(await list(""))).toEqual(["page-4", "page-3", "page-2", "page-1", "page-0"]);
    expect(ids(await list("name=odd"))).toEqual(["page-3", "page-1"]);
    expect(ids(await list("status=failed,running"))).toEqual(["page-3"]);
    expect(ids(await list("text=KETTLE"))).toEqual(["page-3"]);
    const first = await list("limit=2");
    await put.instance({ instanceId: "page-9", startedAt: base + 9 });
    await eventually(async () => (await list("")).matching === 6, "six rows");
    const second = await list(`limit=2&cursor=${first.cursor}`);
    expect(ids(second)).toEqual(["page-2", "page-1"]);
    const last = await list(`limit=2&cursor=${second.cursor}`);
    expect(ids(last)).toEqual(["page-0"]);
    expect(last.cursor).toBeUndefined();
  });

  it("shows one, and 404 for one that is not there", async () => {
    await put.instance({ instanceId: "one", input: { json: { a: 1 } } });
    expect(await json(await gateway.get("/api/instances/one"))).toMatchObject({ input: { a: 1 } });
    const missing = await gateway.get("/api/instances/nobody");
    expect(missing.status).toBe(404);
    expect(await json(missing)).toMatchObject({ ok: false, error: { code: "instance_not_found" } });
  });

  it("gives the history with times, a part of it, and the file", async () => {
    await writeHistory(gateway.history, "told", [
      { at: 1000, events: [{ kind: "instance.started", name: "demo", input: { json: 1 } }] },
      { at: 2000, events: [{ kind: "timer.created", fireAt: 3000 }] },
      {
        at: 3000,
        events: [
          { kind: "timer.fired", of: 2 },
          { kind: "instance.completed", output: { json: 2 } },
        ],
      },
    ]);
    const whole = await json(await gateway.get("/api/instances/told/history"));
    expect(whole).toMatchObject({ execution: 1, executions: [1], total: 4 });
    expect((whole.events as { at: number }[]).map((event) => event.at)).toEqual([1000, 2000, 3000, 3000]);
    const rest = await json(await gateway.get("/api/instances/told/history?after=2"));
    expect((rest.events as { event: { id: number } }[]).map(({ event }) => event.id)).toEqual([3, 4]);
    const file = await gateway.get("/api/instances/told/history?download=true");
    expect(file.headers.get("content-disposition")).toBe('attachment; filename="told.history.json"');
    expect(await json(file)).toMatchObject({ format: "holdfast-history", instanceId: "told" });
    expect((await gateway.get("/api/instances/nobody/history")).status).toBe(404);
  });

  it("waits for a result until it comes", async () => {
    await put.instance({ instanceId: "slow" });
    expect(await json(await gateway.get("/api/instances/slow/result"))).toMatchObject({ ended: false });
    const waiting = gateway.get("/api/instances/slow/result?wait=30").then(json);
    await put.instance({ instanceId: "slow", status: "completed", output: { json: 42 } });
    expect(await waiting).toMatchObject({ ended: true, instance: { output: 42 } });
  });

  it("asks and updates, and tells what comes back", async () => {
    const answer = (body: object) => Buffer.from(JSON.stringify(body));
    const asked = await gateway.bus.subscribe(names.query("talks", "how"), {}, ({ body, reply }) =>
      reply?.(
        body.length > 0
          ? answer({ ok: true, answer: JSON.parse(Buffer.from(body).toString()) })
          : answer({ ok: false, error: { code: "unknown_query", message: "there are: none" } }),
      ),
    );
    const input = encodeURIComponent('{"deep":[1]}');
    const told = await gateway.get(`/api/instances/talks/query/how?input=${input}`);
    expect([told.status, await json(told)]).toEqual([200, { ok: true, answer: { deep: [1] } }]);
    expect((await gateway.get("/api/instances/talks/query/how")).status).toBe(404);
    expect((await gateway.get("/api/instances/talks/query/how?input={nope")).status).toBe(400);
    await asked.stop();
    const updated = await gateway.bus.subscribe("orchestrations.talks.update.add", {}, ({ headers }) => {
      const updateId = headers["Holdfast-Update-Id"] ?? "";
      const stands = updateId === "bad" ? "refused" : "completed";
      const error = { code: "update_refused", message: "no", retryable: false };
      const said = {
        v: 1,
        updateId,
        status: stands,
        ...(stands === "refused" ? { error } : { answer: { json: 7 } }),
      };
      gateway.bus.send(names.answer("talks", updateId), answer(said));
    });
    const done = await gateway.post("/api/instances/talks/update/add", { input: 1, id: "good" });
    expect([done.status, await json(done)]).toEqual([
      200,
      { ok: true, updateId: "good", status: "completed", answer: 7 },
    ]);
    const refused = await gateway.post("/api/instances/talks/update/add", { input: 1, id: "bad" });
    expect([refused.status, await json(refused)]).toMatchObject([409, { error: { code: "update_refused" } }]);
    await updated.stop();
  });

  it("signals, cancels and terminates", async () => {
    await put.instance({ instanceId: "steered" });
    expect((await gateway.post("/api/instances/steered/signal/go", { payload: { n: 1 } })).status).toBe(202);
    expect((await gateway.post("/api/instances/steered/cancel", { reason: "enough" })).status).toBe(202);
    expect((await gateway.post("/api/instances/steered/terminate", {})).status).toBe(202);
    const stored = (await gateway.bus.read(names.inboxStream, "inbox.*.steered.>")) ?? [];
    expect(stored.map(({ subject }) => subject.split(".").slice(3).join("."))).toEqual([
      "signal.go",
      "cancel",
      "terminate",
    ]);
    expect((await gateway.post("/api/instances/nobody/cancel", {})).status).toBe(404);
  });
});

describe("sessions and workers over HTTP", () => {
  it("joins a session with its lease and its holder's view, explains and evicts it", async () => {
    await put.worker({
      workerId: "w1-a",
      sessions: [
        {
          sessionId: "s1",
          type: "classifier",
          epoch: 7,
          calls: 12,
          queued: 1,
          running: 1,
          since: 1,
          snapshot: { hits: 3 },
        },
      ],
    });
    const on = { workerId: "w1-a", epoch: 7, nodeId: "w1", claimedAt: Date.now() };
    await put.session({ sessionId: "s1", ...on, lossCapability: "c1.secret" });
    await put.lease("s1", 1, "w1-a");
    const row = await eventually(async () => {
      const body = await json(await gateway.get("/api/sessions/s1"));
      return body.work && body.lease ? body : undefined;
    }, "the joined session");
    expect(row).toMatchObject({
      lease: { holder: "w1-a", ttlMs: 15_000 },
      work: { calls: 12, snapshot: { hits: 3 } },
    });
    expect(JSON.stringify(row)).not.toContain("secret");
    const explained = await json(await gateway.get("/api/sessions/s1/explain"));
    expect((explained.sentences as string[]).join(" ")).toContain("held by w1-a (epoch 7)");
    expect((await gateway.post("/api/sessions/s1/evict", {})).status).toBe(202);
    const [work] = (await gateway.bus.read(names.sessionsStream, names.sessionWork("w1-a", "s1"))) ?? [];
    expect(JSON.parse(Buffer.from(work?.body ?? []).toString())).toMatchObject({ kind: "evict", epoch: 7 });
  });

  it("lists and hands out what code inside a session stored under names", async () => {
    await gateway.bus.blobs.put("session-blobs/s3/1-1", Buffer.from([0, 255, 7]));
    const blobs = [
      { name: "model.bin", key: "session-blobs/s3/1-1", bytes: 3, storedAt: 5 },
      { name: "gone", key: "session-blobs/s3/1-2", bytes: 3, storedAt: 6 },
    ];
    await put.session({ sessionId: "s3", blobs });
    await eventually(async () => (await gateway.get("/api/sessions/s3")).ok, "s3");
    expect(await json(await gateway.get("/api/sessions/s3"))).toMatchObject({ blobs });
    const response = await gateway.get("/api/sessions/s3/blobs/model.bin");
    expect(response.headers.get("content-type")).toBe("application/octet-stream");
    expect(response.headers.get("content-disposition")).toBe("attachment");
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([0, 255, 7]);
    const refused = async (path: string) => {
      const answer = await gateway.get(path);
      const body = (await json(answer)) as { error?: { code?: string } };
      return [answer.status, body.error?.code];
    };
    expect(await refused("/api/sessions/s3/blobs/none")).toEqual([404, "not_found"]);
    expect(await refused("/api/sessions/s3/blobs/gone")).toEqual([404, "blob_missing"]);
    expect(await refused("/api/sessions/nobody/blobs/a")).toEqual([404, "session_not_found"]);
  });

  it("refuses to evict what nobody holds", async () => {
    await put.session({ sessionId: "s2", phase: "parked" });
    await eventually(async () => (await gateway.get("/api/sessions/s2")).ok, "s2");
    const response = await gateway.post("/api/sessions/s2/evict", {});
    expect(response.status).toBe(409);
    expect(await json(response)).toMatchObject({ error: { code: "session_unheld" } });
  });

  it("drains a worker that answers, and says so when it does not", async () => {
    await put.worker({ workerId: "w2-a" });
    await eventually(async () => (await gateway.get("/api/workers/w2-a")).ok, "w2-a");
    const silent = await gateway.post("/api/workers/w2-a/drain", {});
    expect(silent.status).toBe(504);
    const asked: string[] = [];
    const listening = await gateway.bus.subscribe(names.workerControl("w2-a"), {}, (message) => {
      asked.push(Buffer.from(message.body).toString());
      message.reply?.(Buffer.from('{"ok":true}'));
    });
    expect((await gateway.post("/api/workers/w2-a/drain", {})).status).toBe(202);
    expect(asked).toEqual(['{"kind":"drain"}']);
    await listening.stop();
  });
});

describe("the installation", () => {
  it("shows queues with consumers", async () => {
    const body = await json(await gateway.get("/api/queues"));
    const streams = body.streams as { name: string; role: string }[];
    expect(streams.find(({ name }) => name === "INBOX")).toMatchObject({ role: "queue" });
    expect(streams.find(({ name }) => name === "DEAD")).toMatchObject({ role: "dead" });
  });

  it("knows what can be started, from the orchestrators", async () => {
    const schema = { type: "object", properties: { who: { type: "string" } } };
    await put.service({ service: "orchestrator", id: "o1", orchestrations: { greet: schema, other: null } });
    const body = await eventually(async () => {
      const found = await json(await gateway.get("/api/orchestrations"));
      return (found.orchestrations as { served: boolean }[]).some(({ served }) => served) && found;
    }, "the names");
    expect((body.orchestrations as unknown[])[0]).toEqual({ name: "greet", served: true, input: schema });
  });

  it("says in words what is wrong", async () => {
    await put.session({
      sessionId: "waits",
      phase: "opening",
      type: "ml-classifier",
      updatedAt: Date.now() - 60_000,
    });
    const overview = await eventually(async () => {
      const body = await json(await gateway.get("/api/overview"));
      const troubles = body.troubles as { message: string }[];
      return troubles.some(({ message }) => message.includes("ml-classifier")) && body;
    }, "the trouble");
    const messages = (overview.troubles as { message: string }[]).map(({ message }) => message);
    expect(messages).toContainEqual(
      expect.stringMatching(
        /^1 session of type ml-classifier waits, the oldest for \d+ s: no worker serves session type ml-classifier$/,
      ),
    );
    expect(messages).toContain("No watcher is running: sessions of workers that die are not reported lost");
  });

  it("records who did what before it is done, and that it failed", async () => {
    const body = await json(await gateway.get("/api/audit?limit=200"));
    const entries = body.entries as { action: string; target: string; outcome: string; who: string }[];
    expect(entries.find(({ action }) => action === "startOrchestration")).toMatchObject({
      who: "local",
      outcome: "asked",
    });
    expect(
      entries.filter(({ action, target }) => action === "cancelInstance" && target === "nobody"),
    ).toEqual([
      expect.objectContaining({ outcome: "failed" }),
      expect.objectContaining({ outcome: "asked" }),
    ]);
  });
});
