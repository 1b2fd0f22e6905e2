/** Every example as its users run it: real services, a real model, and workers that are killed. */
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createConnection } from "node:net";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { account, move } from "../../examples/account/app.ts";
import { add, cart, contents } from "../../examples/cart/app.ts";
import { LittleServer } from "../../examples/connection-pool/little-server.ts";
import { loadMails } from "../../examples/mails/mails.ts";
import { trip } from "../../examples/trip/app.ts";
import type { HistoryEntry, StreamItem } from "../../shared/sdk/index.ts";
import { openAgentPage } from "../support/gateway/agent-page.ts";
import { browserPath } from "../support/gateway/browser.ts";
import { Stack, until } from "../support/processes/stack.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await Stack.start({
    app: fileURLToPath(new URL("../../examples/app.ts", import.meta.url)),
    workers: 2,
    // How long the calls of a pool wait for a member that was killed.
    env: { WORKER_ACK_WAIT: "3s" },
  });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const kinds = async (id: string, kind: HistoryEntry["kind"]) =>
  (await stack.client.history(id)).filter((event) => event.kind === kind);

/** Kills the worker that holds the session; another worker takes its place. */
async function killHolder(sessionId: string): Promise<void> {
  const { record } = await stack.client.session(sessionId).describe();
  const worker = (await stack.client.workers.list()).find(({ workerId }) => workerId === record.workerId);
  const holder = stack.of("worker").find(({ pid }) => pid === worker?.pid);
  if (!holder) throw new Error(`${record.workerId} is not one of ours`);
  holder.kill("SIGKILL");
  await holder.exited;
  await stack.run("worker");
}

const result = <O>(id: string) => stack.client.get<O>(id).result({ timeout: "50s" });

it("the basics are served beside the others", async () => {
  const handle = await stack.client.start("hello", { name: "Ada" });
  expect(await handle.result({ timeout: "30s" })).toBe("Hello, Ada!");
});

it("a local activity needs no worker", async () => {
  const { instanceId } = await stack.client.start("hello-locally", { name: "Ada" });
  expect(await result(instanceId)).toBe("Hello, Ada!");
  expect(await kinds(instanceId, "activity.scheduled")).toMatchObject([{ target: { kind: "local" } }]);
});

describe("flow control", () => {
  it("two imports of a key run at a time", async () => {
    const ids = Array.from({ length: 5 }, (_, i) => `import-${i}`);
    const flow = { key: "disk", concurrency: 2 };
    for (const id of ids) await stack.client.start("import-file", { ms: 300 }, { id, flow });
    const spans = await Promise.all(ids.map((id) => stack.client.waitForEnd(id, 50_000, { known: true })));
    const ends = spans.flatMap((view) => {
      const { from, to } = (view as { output: { from: number; to: number } }).output;
      return [
        { at: from, by: 1 },
        { at: to, by: -1 },
      ];
    });
    ends.sort((a, b) => a.at - b.at || a.by - b.by);
    let running = 0;
    for (const { by } of ends) expect((running += by)).toBeLessThanOrEqual(2);
  });

  it("mails to one customer go out at their rate, from two workers", async () => {
    const { instanceId } = await stack.client.start("newsletter", { customer: "ada", n: 20 });
    const sent = (await result<number[]>(instanceId)).sort((a, b) => a - b);
    expect((sent.at(-1) ?? 0) - (sent[0] ?? 0)).toBeGreaterThanOrEqual(19 * 50 - 50);
  });
});

it("the first orchestration of the README is this one, and does what it says", async () => {
  const read = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), "utf8");
  expect(await read("README.md")).toContain(await read("examples/first/app.ts"));
  const handle = await stack.client.start("measure", { words: ["hold", "fast"] });
  expect(await handle.result({ timeout: "30s" })).toBe(8);
});

describe("messages", () => {
  it("fills a cart by updates, each applied once, and looks at it by queries", async () => {
    const { client } = stack;
    const handle = await client.start(cart, undefined, { id: "e2e-cart" });
    expect(await handle.query(contents)).toEqual([]);
    for (let i = 0; i < 2; i++)
      expect(await handle.update(add, { name: "pen", price: 2 }, { id: "a1" })).toBe(1);
    await expect(handle.update(add, { name: "pen", price: 2 })).rejects.toMatchObject({
      code: "update_refused",
    });
    expect(await handle.query(contents, { above: 1 })).toEqual([{ name: "pen", price: 2 }]);
    await handle.signal("checkout");
    expect(await handle.result({ timeout: "30s" })).toBe(2);
    expect(await handle.query(contents)).toHaveLength(1);
  });

  it("answers updates and queries while orchestrators are killed", async () => {
    const { client } = stack;
    const handle = await client.start(account, undefined, { id: "e2e-account" });
    const moves = Array.from({ length: 40 }, (_, n) =>
      handle.update(move, 1, { id: `m${n}`, timeout: "50s" }),
    );
    const [orchestrator] = stack.of("orchestrator");
    orchestrator?.kill("SIGKILL");
    await orchestrator?.exited;
    await stack.run("orchestrator");
    await Promise.all(moves);
    expect(await handle.query("statement", undefined, { timeout: "30s" })).toEqual({
      balance: 40,
      moves: 40,
    });
    await handle.signal("close");
    expect(await handle.result({ timeout: "30s" })).toBe(40);
  });

  it("undoes what was booked where the rest is not to be had, or not paid in time", async () => {
    const { client } = stack;
    const input = { what: ["hotel", "flight"], payWithinMs: 300 };
    const failing = [
      await client.start(trip, { ...input, what: ["hotel", "flight", "nothing"] }),
      await client.start(trip, input),
    ];
    for (const [i, code] of ["sold_out", "timeout"].entries()) {
      const { instanceId, result: end } = failing[i] ?? raise();
      await expect(end({ timeout: "30s" })).rejects.toMatchObject({ code });
      const scheduled = await kinds(instanceId, "activity.scheduled");
      expect(scheduled.filter((event) => "name" in event && event.name === "cancel-booking")).toHaveLength(2);
    }
    const paid = await client.start(trip, { ...input, payWithinMs: 60_000 });
    await paid.signal("paid", 2);
    expect(await paid.result({ timeout: "30s" })).toHaveLength(2);
  });
});

const raise = (): never => {
  throw new Error("nothing there");
};

describe("classify", () => {
  const mails = loadMails().slice(0, 60);
  const documents = mails.map(({ text }) => text);
  type Labelled = { labels: { label: string; score: number }[]; ms: number };

  it("sorts documents through one session and says how far it is", async () => {
    const { instanceId } = await stack.client.start("classify-documents", { documents });
    const { labels, ms } = await result<Labelled>(instanceId);
    expect(labels).toHaveLength(documents.length);
    expect(ms).toBeGreaterThan(0);
    const right = mails.filter(({ label }, i) => label === labels[i]?.label).length;
    expect(right / mails.length).toBeGreaterThan(0.9);
    expect((await stack.client.status(instanceId)).customStatus).toEqual({ done: 60, of: 60 });
    expect(await kinds(instanceId, "session.activated")).toHaveLength(1);
    const models = (await stack.client.workers.list()).flatMap(({ models }) => models);
    expect(models).toContainEqual({
      ...{ name: "spam-use", device: "cpu", loadMs: expect.any(Number), bytes: expect.any(Number) },
    });
  });

  it("gives the same answers with the model loaded each time", async () => {
    const some = documents.slice(0, 3);
    const { instanceId: cold } = await stack.client.start("classify-cold", { documents: some });
    const { instanceId: warm } = await stack.client.start("classify-documents", { documents: some });
    const [{ labels: each }, { labels: held }] = [await result<Labelled>(cold), await result<Labelled>(warm)];
    expect(each.map(({ label }) => label)).toEqual(held.map(({ label }) => label));
  });
});

describe("agent", () => {
  const id = "chat";
  const items: StreamItem[] = [];
  const abort = new AbortController();
  afterAll(() => abort.abort());
  const told = (turns: number) =>
    until(`turn ${turns} is over`, async () => {
      const status = (await stack.client.status(id)).customStatus as Status | undefined;
      return status?.turns === turns ? status : undefined;
    });
  const say = (text: string) => stack.client.signal(id, "say", text);
  /** Twelve words that the model takes for talk: the answer repeats them. */
  const small = "We met Tom at the office yesterday and talked about it all. ";
  interface Status {
    turns: number;
    sessionId: string;
    last: string;
  }

  it("streams what it says while it says it", async () => {
    await stack.client.start("agent-conversation", { paceMs: 10 }, { id });
    void (async () => {
      for await (const item of stack.client.stream(id, { signal: abort.signal })) items.push(item);
    })();
    await say("Hello, my name is Ada");
    const { last } = await told(1);
    expect(last).toBe("Nice to meet you, Ada. I will keep that in mind.");
    await until("all was read", () => items.length >= last.split(" ").length);
    expect(items.map(({ chunk }) => chunk).join("")).toBe(last);
    const [, second] = items;
    const replayed: unknown[] = [];
    for await (const { chunk } of stack.client.stream(id, { after: second?.offset, follow: false }))
      replayed.push(chunk);
    expect(replayed).toEqual(items.slice(2).map(({ chunk }) => chunk));
  });

  it("asks a real model what a text wants", async () => {
    await say(
      "CONGRATULATIONS!!! You have WON $1,000,000. Click here now for FREE money, limited offer, buy now!!!",
    );
    expect((await told(2)).last).toContain("advertisement");
  });

  it("remembers after its worker was killed", async () => {
    const { sessionId } = await told(2);
    await killHolder(sessionId);
    await say("What is my name?");
    expect((await told(3)).last).toBe("Your name is Ada.");
    expect(await kinds(id, "session.lost")).toHaveLength(1);
    expect((await kinds(id, "session.activated")).at(-1)).toMatchObject({ restored: true });
  });

  it("repeats a turn that was cut off, once and on the memory before it, and the page shows it", async () => {
    const { sessionId } = await told(3);
    const before = items.at(-1)?.offset ?? 0;
    // Without a browser on the machine all but the page is judged.
    await using page = browserPath() === undefined ? undefined : await openAgentPage(stack.client);
    await say(small.repeat(25));
    await until("it has begun to speak", () => items.some(({ offset }) => offset > before));
    if (page) await until("the page shows four turns", async () => (await page.lines()).length === 4);
    await killHolder(sessionId);
    const { last } = await told(4);
    if (page) {
      // What the dead worker had said is taken away, and the whole turn stands there once.
      await until("the page shows the whole turn", async () => (await page.lines()).at(-1) === last);
      expect(await page.lines()).toContain("another worker goes on");
    }
    const runs = new Set(items.filter(({ offset }) => offset > before).map(({ run }) => run));
    expect(runs.size).toBe(2);
  });

  it("is stopped by an event to its session", async () => {
    const { sessionId } = await told(4);
    const before = items.at(-1)?.offset ?? 0;
    await say(small.repeat(150));
    await until("it has begun to speak", () => items.some(({ offset }) => offset > before));
    await stack.client.session(sessionId).send("stop");
    expect((await told(5)).last.split(" ").length).toBeLessThan(1_800);
    await stack.client.signal(id, "say", { not: "a text" });
    await say("bye");
    const turns = await result<{ who: string; text: string }[]>(id);
    expect(turns.map(({ who }) => who)).toEqual(Array.from({ length: 5 }, () => ["user", "agent"]).flat());
    await expect(stack.client.session(sessionId).send("stop")).rejects.toMatchObject({
      code: "session_unusable",
    });
  });
});

describe("file cache", () => {
  const text = "all work and no play\n".repeat(20_000);
  const gets: string[] = [];
  const puts: { path: string; body: Buffer }[] = [];
  /** Asked before a PUT is answered. */
  let beforeAnswer: () => Promise<void> = async () => undefined;
  let server: Server;
  let at = "";
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const path = request.url ?? "";
      if (request.method === "GET") {
        gets.push(path);
        if (path !== "/missing") return response.end(text);
        response.statusCode = 404;
        return response.end();
      }
      const body = Buffer.concat(await request.toArray());
      await beforeAnswer();
      puts.push({ path, body });
      return response.end();
    }).listen(0, "127.0.0.1");
    await until("it listens", () => server.listening);
    at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const start = async (name: string) =>
    (await stack.client.start("process-file", { source: `${at}/${name}`, target: `${at}/${name}.gz` }))
      .instanceId;

  it("downloads, compresses and uploads on one worker", async () => {
    const id = await start("plain");
    const { downloaded, uploaded } = await result<{ downloaded: number; uploaded: number }>(id);
    expect(downloaded).toBe(text.length);
    const delivered = puts.find(({ path }) => path === "/plain.gz")?.body ?? Buffer.of();
    expect(delivered.byteLength).toBe(uploaded);
    expect(gunzipSync(delivered).toString()).toBe(text);
    expect(gets).toEqual(["/plain"]);
  });

  it("fetches the file again when the worker that had it is killed, and repeats only what was open", async () => {
    let killed = false;
    let sessionId = "";
    beforeAnswer = async () => {
      if (killed) return;
      killed = true;
      await killHolder(sessionId);
    };
    const id = "killed-upload";
    sessionId = `${id}-s1`;
    await stack.client.start("process-file", { source: `${at}/again`, target: `${at}/again.gz` }, { id });
    await result(id);
    beforeAnswer = async () => undefined;
    expect(gets.filter((path) => path === "/again")).toHaveLength(2);
    const delivered = puts.findLast(({ path }) => path === "/again.gz")?.body ?? Buffer.of();
    expect(gunzipSync(delivered).toString()).toBe(text);
    expect(await kinds(id, "session.lost")).toHaveLength(1);
  });

  it("fails with the reason where there is no such file", async () => {
    await expect(result(await start("missing"))).rejects.toThrow(/missing answered 404/);
  });
});

describe("connection pool", () => {
  it("asks many questions over few connections, to a server of its own", async () => {
    const { instanceId } = await stack.client.start("ask-many", { questions: 100, connections: 3 });
    const { answers, connections } = await result<{ answers: string[]; connections: number }>(instanceId);
    expect(answers).toHaveLength(100);
    expect(answers[7]).toBe("QUESTION 7");
    expect(connections).toBe(3);
  });

  it("opens its connections anew on another worker, and leaves none behind", async () => {
    const little = await LittleServer.listen();
    const { port } = little.facts;
    try {
      const id = "pool-killed";
      const input = { questions: 3_000, connections: 4, server: { port } };
      await stack.client.start("ask-many", input, { id });
      await until("it asks", () => little.facts.questions > 0);
      await killHolder(`${id}-s1`);
      const { answers } = await result<{ answers: string[] }>(id);
      expect(new Set(answers).size).toBe(3_000);
      expect(little.facts.connections).toBe(8);
      await until("all connections are closed", () => little.open === 0);
    } finally {
      await little.close();
    }
  });

  it("cannot be had where nobody listens, and says so", async () => {
    const little = await LittleServer.listen();
    const { port } = little.facts;
    await little.close();
    await expect(refused(port)).resolves.toBe("ECONNREFUSED");
    const { instanceId } = await stack.client.start("ask-many", { questions: 1, server: { port } });
    await expect(result(instanceId)).rejects.toMatchObject({
      code: "session_init_failed",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });
});

describe("pool of models", () => {
  const mails = loadMails().slice(0, 120);
  const documents = mails.map(({ text }) => text);
  const members = async () =>
    (await stack.client.sessions.list({ type: "pooled-classifier" })).filter(
      ({ phase }) => phase === "active",
    );

  it("serves many orchestrations with few models, and goes on when one of them is killed", async () => {
    const { instanceId } = await stack.client.start("sort-all", { documents, parts: 6 });
    const [member] = await until("a member is at work", async () => {
      const active = await members();
      return active.length >= 2 ? active : undefined;
    });
    await killHolder(member?.sessionId ?? "");
    const labels = await result<{ label: string }[]>(instanceId);
    const right = mails.filter(({ label }, i) => label === labels[i]?.label).length;
    expect(labels).toHaveLength(documents.length);
    expect(right / mails.length).toBeGreaterThan(0.9);
    expect(await kinds(instanceId, "child.completed")).toHaveLength(6);
  });

  it("unloads them when nobody is left", async () => {
    await until("no member is active", async () => (await members()).length === 0);
  });
});

const refused = (port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    createConnection(port, "127.0.0.1").once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
  });
