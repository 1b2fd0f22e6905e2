/**
 * Every route, asked by a caller who may see users' values and by one who may not (GATEWAY-7), and what the audit then
 * says (GATEWAY-8). A route that is in none of the two lists fails the first test: whoever adds one says here what it shows.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRoutes } from "../../../services/gateway/routes/index.ts";
import { hiderOf } from "../../../services/gateway/security/index.ts";
import { encode } from "../../../shared/bus/index.ts";
import { keyedSessionId } from "../../../shared/definitions/index.ts";
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

const secret = "S3CRET";
const tokens = [
  { role: "admin", name: "shapes", token: "without-values-0123456789abcdef" },
  { role: "admin", name: "values", token: "with-values-0123456789abcdef", payloads: true },
] as const;
type Name = (typeof tokens)[number]["name"];
const as = (name: Name) => ({
  authorization: `Bearer ${tokens.find((token) => token.name === name)?.token}`,
});
const failure = {
  code: "boom",
  message: `no ${secret}`,
  retryable: false,
  details: { secret },
  stack: secret,
};
const sse = { accept: "text/event-stream" };

interface Asked {
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** What its entry in the audit contains, where another way of asking leaves one of the same name. */
  entry?: string;
}

/** By the operation: how it is asked so that its answer has a user's value. */
const withValues: Record<string, Asked[]> = {
  listInstances: [{ path: "/api/instances" }],
  getInstance: [{ path: "/api/instances/i1" }],
  getHistory: [{ path: "/api/instances/i1/history" }],
  getResult: [{ path: "/api/instances/i1/result" }],
  getStream: [
    { path: "/api/instances/i1/stream" },
    { path: "/api/instances/i2/stream", headers: sse, entry: '"target":"i2"' },
  ],
  queryInstance: [{ path: "/api/instances/i1/query/answers" }, { path: "/api/instances/i1/query/throws" }],
  updateInstance: [
    { path: "/api/instances/i1/update/answers", body: {} },
    { path: "/api/instances/i1/update/throws", body: {} },
  ],
  listSessions: [{ path: "/api/sessions" }],
  getSession: [{ path: "/api/sessions/s1" }, { path: "/api/sessions/s2" }, { path: "/api/sessions/s3" }],
  explainSession: [{ path: "/api/sessions/s1/explain" }, { path: "/api/sessions/s2/explain" }],
  describeKey: [{ path: "/api/keys/box/k1" }],
  callKey: [
    ...["answers", "throws"].map((call) => ({ path: `/api/sessions/box/k1/${call}`, body: {} })),
    ...["answers-live", "throws-live"].map((call) => ({
      ...{ path: `/api/sessions/box/k1/${call}`, body: {}, headers: sse },
      entry: `"call":"${call}"`,
    })),
  ],
  listPools: [{ path: "/api/pools" }],
  callPool: [
    { path: "/api/pools/box/calls/answers", body: { input: null } },
    { path: "/api/pools/box/calls/throws", body: { input: null } },
  ],
  listWorkers: [{ path: "/api/workers" }],
  getWorker: [{ path: "/api/workers/w1" }],
  listSchedules: [{ path: "/api/schedules" }],
  getSchedule: [{ path: "/api/schedules/nightly" }],
  listDeadLetters: [{ path: "/api/dead" }],
  getDeadLetter: [{ path: "/api/dead/1" }],
};

/** Nothing but a value: refused to who may not see it. */
const valueOnly: Record<string, Asked> = {
  getBlob: { path: `/api/instances/i1/blobs/${"a".repeat(64)}` },
  getSessionBlob: { path: "/api/sessions/s3/blobs/notes" },
};

/** Answers without any user's value: names, ids, numbers, what operators do. */
const withoutValues = [
  ...["login", "logout", "loginWays", "whoami", "getOverview", "listOrchestrations", "listServices"],
  ...["listAudit", "issueToken", "listTokens", "revokeToken", "startOrchestration", "startAgain"],
  ...["signalInstance", "cancelInstance", "terminateInstance", "getMessages", "evictSession", "drainSession"],
  ...["sendToSession", "closeKey", "resizePool", "pausePool", "resumePool", "forgetPool", "drainWorker"],
  ...["createSchedule", "pauseSchedule", "resumeSchedule", "triggerSchedule", "backfillSchedule"],
  ...["deleteSchedule", "listWaitingKeys", "listQueues", "retryDeadLetter", "discardDeadLetter"],
];

const routes = allRoutes({} as Parameters<typeof allRoutes>[0]);

let nats: TestNats;
let gateway: TestGateway;

const ask = ({ path, body, headers = {} }: Asked, name: Name) =>
  body === undefined
    ? gateway.get(path, { ...headers, ...as(name) })
    : gateway.post(path, body, { ...headers, ...as(name) });

/** What users' code says in this world: a value, or an error with a value in its words. */
async function answering(): Promise<void> {
  const { bus } = gateway;
  const put = hands(bus);
  const said = (body: object) => Buffer.from(JSON.stringify(body));
  const throws = (subject: string) => subject.includes("throws");
  await bus.subscribe("query.i1.*", {}, ({ subject, reply }) =>
    reply?.(
      throws(subject)
        ? said({ ok: false, error: { code: "query_failed", message: `no ${secret}`, details: { secret } } })
        : said({ ok: true, answer: secret }),
    ),
  );
  await bus.subscribe("orchestrations.i1.update.*", {}, ({ subject, headers }) => {
    const updateId = headers["Holdfast-Update-Id"] ?? "";
    const rest = throws(subject)
      ? { status: "failed", error: failure }
      : { status: "completed", answer: { json: secret } };
    bus.send(names.answer("i1", updateId), said({ v: 1, updateId, ...rest }));
  });
  const sessionId = keyedSessionId("box", "k1");
  await bus.subscribe(names.keyed("box", "k1"), {}, ({ reply }) =>
    reply?.(said({ state: "held", sessionId, workerId: "w1", epoch: 7, configDigest: "", onLost: "fail" })),
  );
  await bus.subscribe(names.sessionCalls("box", "w1", sessionId), {}, async ({ body, reply }) => {
    const [{ task } = { task: undefined }] = JSON.parse(Buffer.from(body).toString()).calls;
    const chunk = { v: 1, attempt: 1, run: 1, index: 0, at: 1, chunk: { json: secret } };
    await bus.publish(names.stream(task.instanceId, 1, task.of), said(chunk));
    const result = throws(task.name)
      ? { kind: "failed", error: failure }
      : { kind: "completed", output: { json: secret } };
    const report = { v: 1, execution: 1, of: task.of, attempt: 1, workerId: "w1", epoch: 7, result };
    reply?.(said({ v: 1, kind: "done", workerId: "w1", report }));
  });
  await bus.subscribe("orchestrations.*.start.holdfast-pool-call", {}, ({ subject, body }) => {
    const instanceId = subject.split(".")[1] ?? "";
    const { call } = JSON.parse(Buffer.from(body).toString());
    const end = throws(call)
      ? { status: "failed", error: failure }
      : { status: "completed", output: { json: secret } };
    const send = () => void bus.send(names.notice(instanceId, "ended"), said({}));
    void put.instance({ instanceId, name: "holdfast-pool-call", ...end }).then(send);
  });
}

beforeAll(async () => {
  nats = await startServer();
  gateway = await startGateway(nats.url, {
    tokens: [...tokens],
    payloadReaders: "granted",
    maxHistoryBytes: 100_000,
  });
  const { bus, history } = gateway;
  const put = hands(bus);
  await put.instance({
    instanceId: "i1",
    status: "failed",
    input: { json: { card: secret } },
    customStatus: { json: secret },
    error: failure,
  });
  await writeHistory(history, "i1", [
    {
      at: Date.now(),
      events: [
        { kind: "instance.started", name: "demo", input: { json: { card: secret } } },
        { kind: "session.lost", sessionId: "s2", reason: "aborted", detail: `gave up ${secret}` },
        { kind: "instance.failed", error: failure },
      ],
    },
  ]);
  const chunk = { v: 1, attempt: 1, run: 1, index: 0, at: 1, chunk: { json: secret } };
  await put.instance({ instanceId: "i2", status: "completed" });
  for (const id of ["i1", "i2"]) await bus.publish(names.stream(id, 1, 2), encode(chunk));
  await put.instance({
    instanceId: "pool-box",
    name: "holdfast-pool",
    customStatus: { json: { type: "box", error: `no ${secret}` } },
  });
  await put.instance({
    instanceId: "schedule-nightly",
    name: "holdfast-schedule",
    input: { json: { spec: { orchestration: "demo", every: "1h", input: { card: secret } } } },
  });
  await put.session({ sessionId: "s1", phase: "failed", error: failure });
  const lost = { reason: "aborted", detail: `gave up ${secret}`, at: 1 };
  await put.session({ sessionId: "s2", phase: "lost", lost });
  const on = { workerId: "w1", epoch: 7, nodeId: "w1", claimedAt: Date.now() };
  const blobs = [{ name: "notes", key: "session-blobs/s3/1-1", bytes: 6, storedAt: 5 }];
  await put.session({ sessionId: "s3", ...on, blobs });
  await put.session({ sessionId: keyedSessionId("box", "k1"), type: "box", ...on, error: failure });
  const holding = { type: "box", epoch: 7, calls: 1, queued: 0, running: 0, since: 1, snapshot: { secret } };
  await put.worker({ workerId: "w1", sessions: [{ sessionId: "s3", ...holding }] });
  await bus.blobs.put("session-blobs/s3/1-1", Buffer.from(secret));
  await bus.blobs.put(`i1/${"a".repeat(64)}`, Buffer.from(JSON.stringify(secret)));
  await put.dead({ what: "start", id: "d1", subject: "x", body: secret, message: `no ${secret}` });
  await answering();
  await eventually(
    async () => (await (await gateway.get("/api/sessions/s3", as("values"))).text()).includes(secret),
    "the session joined with its worker",
  );
  await eventually(
    async () => (await json(await gateway.get("/api/instances", as("shapes")))).matching === 2,
    "the instances",
  );
});
afterAll(async () => {
  await gateway?.stop();
  await nats?.stop();
});

it("every route is in one of the lists", () => {
  const listed = [...Object.keys(withValues), ...Object.keys(valueOnly), ...withoutValues];
  expect(listed.sort()).toEqual(routes.map(({ id }) => id).sort());
  const open = routes.filter(({ id, answer }) => id in withValues && !hiderOf(answer)).map(({ id }) => id);
  expect(open, "only its sentences have values, which the route hides itself").toEqual(["explainSession"]);
});

const audited = async (who: Name) => {
  const { entries } = await json(await gateway.get("/api/audit?limit=1000", as("values")));
  return (entries as { who: string; action: string; outcome: string }[]).filter((one) => one.who === who);
};

const cases = Object.entries(withValues).flatMap(([id, all]) =>
  all.map((one) => [`${id} ${one.path}${one.headers ? " (events)" : ""}`, id, one] as const),
);

describe.each(cases)("%s", (_, id, asked) => {
  it("shows values to who may see them, and shapes to others", async () => {
    const [hidden, shown] = [await ask(asked, "shapes"), await ask(asked, "values")];
    expect(hidden.status, "what happened is no secret").toBe(shown.status);
    const text = await hidden.text();
    expect(text).not.toContain(secret);
    expect(text, "but that there is one").toContain("text of ");
    expect(await shown.text()).toContain(secret);
  });

  it("is in the audit for who saw values", async () => {
    const entries = (await audited("values")).filter(({ action }) => action === id);
    expect(entries.filter((entry) => JSON.stringify(entry).includes(asked.entry ?? ""))).not.toEqual([]);
    const changes = routes.find((route) => route.id === id)?.audit !== undefined;
    expect((await audited("shapes")).some(({ action }) => action === id)).toBe(changes);
  });
});

describe.each(Object.entries(valueOnly))("%s", (id, asked) => {
  it("is refused to who may not see values, and in the audit for others", async () => {
    const hidden = await ask(asked, "shapes");
    expect(hidden.status).toBe(403);
    expect(await json(hidden)).toMatchObject({ error: { code: "payloads_hidden" } });
    expect(await (await ask(asked, "values")).text()).toContain(secret);
    expect((await audited("values")).map(({ action }) => action)).toContain(id);
  });
});

it("the export of a history is refused too", async () => {
  const asked = { path: "/api/instances/i1/history?download=true" };
  expect((await ask(asked, "shapes")).status).toBe(403);
  expect(await (await ask(asked, "values")).text()).toContain(secret);
});

it.each(
  routes.filter(({ id, method }) => withoutValues.includes(id) && method === "get" && id !== "getMessages"),
)("$id shows nobody a value", async ({ path }) => {
  const response = await ask({ path }, "values");
  expect(response.status).toBe(200);
  expect(await response.text()).not.toContain(secret);
});

it("errors that Holdfast writes itself are told in full", async () => {
  const { bus } = gateway;
  const answer = { ok: false, error: { code: "unknown_query", message: "there are: none" } };
  const subscription = await bus.subscribe("query.i2.*", {}, ({ reply }) => reply?.(encode(answer)));
  const response = await gateway.get("/api/instances/i2/query/how", as("shapes"));
  expect(await json(response)).toMatchObject({ error: answer.error });
  await subscription.stop();
});

it.each(["instances", "sessions", "workers"])("live events about %s", async (topic) => {
  const put = hands(gateway.bus);
  const change: Record<string, () => Promise<void>> = {
    instances: () => put.instance({ instanceId: "i1", status: "failed", error: failure }),
    sessions: () => put.session({ sessionId: "s1", phase: "failed", error: failure }),
    workers: () =>
      put.worker({
        workerId: "w1",
        sessions: [
          {
            sessionId: "s3",
            ...{ type: "box", epoch: 7, calls: 2, queued: 0, running: 0, since: 1, snapshot: { secret } },
          },
        ],
      }),
  };
  const heard = async (name: Name) => {
    const abort = new AbortController();
    const events = await fetch(`${gateway.url}/api/events?topics=${topic}`, {
      headers: as(name),
      signal: abort.signal,
    });
    let text = "";
    for await (const piece of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.includes(`event: ${topic}`) && text.endsWith("\n\n")) break;
      await change[topic]?.();
    }
    abort.abort();
    return text;
  };
  expect(await heard("shapes")).not.toContain(secret);
  expect(await heard("values")).toContain(secret);
  const followed = async (name: Name) => (await audited(name)).filter(({ action }) => action === "events");
  expect((await followed("values")).length).toBeGreaterThan(0);
  expect(await followed("shapes")).toEqual([]);
});

it("the audit itself has no value in it, also where users' code refused", async () => {
  for (const name of ["shapes", "values"] as const) {
    await ask({ path: "/api/instances/i1/update/throws", body: {} }, name);
    const failed = (await audited(name)).filter(({ outcome }) => outcome === "failed");
    expect(failed).toContainEqual(expect.objectContaining({ action: "updateInstance", message: "boom" }));
    expect(JSON.stringify(await audited(name))).not.toContain(secret);
  }
});

it("an action that cannot be written to the audit does not happen", async () => {
  await using own = await startGateway(nats.url, { tokens: [...tokens], payloadReaders: "granted" });
  const publish = own.gatewayBus.publish.bind(own.gatewayBus);
  const sent: string[] = [];
  own.gatewayBus.publish = async (subject, ...rest) => {
    sent.push(subject);
    return subject.startsWith("audit.") ? { kind: "unknown" } : publish(subject, ...rest);
  };
  for (const { path, body } of [
    { path: "/api/instances/i1/signal/go", body: {} },
    { path: "/api/instances/i1", body: undefined },
  ]) {
    const response = await (body ? own.post(path, body, as("values")) : own.get(path, as("values")));
    expect(response.status, path).toBe(503);
    expect(await response.text()).not.toContain(secret);
  }
  expect(sent.filter((subject) => subject.startsWith("orchestrations."))).toEqual([]);
});

it("a download, a page of a history and a page of a stream are bounded, big values included", async () => {
  const blob = (key: string) => ({ blob: { key, bytes: 70_000, sha256: "b".repeat(64) } });
  await writeHistory(gateway.history, "big", [
    {
      at: Date.now(),
      events: [
        { kind: "instance.started", name: "demo", input: blob("big/1") },
        { kind: "signal.received", name: "go", payload: blob("big/2") },
      ],
    },
  ]);
  const refused = await ask({ path: "/api/instances/big/history?download=true" }, "values");
  expect(refused.status).toBe(413);
  expect(await json(refused)).toMatchObject({ error: { code: "history_too_large" } });
  const page = await ask({ path: "/api/instances/big/history" }, "values");
  expect(page.status, "a page has no big values in it").toBe(200);

  await hands(gateway.bus).instance({ instanceId: "big", status: "completed" });
  const chunks = 250;
  for (let index = 0; index < chunks; index++) {
    const chunk = { v: 1, attempt: 1, run: 1, index, at: 1, chunk: { json: "x".repeat(1_000) } };
    await gateway.bus.publish(names.stream("big", 1, 2), encode(chunk));
  }
  const sizes: number[] = [];
  for (let after = 0, items = [{}]; items.length > 0; ) {
    const answer = await json(await ask({ path: `/api/instances/big/stream?after=${after}` }, "values"));
    items = answer.items as object[];
    after = answer.offset as number;
    sizes.push(items.length);
  }
  expect(sizes).toEqual([100, 100, 50, 0]);
});
