/**
 * Sessions that belong to keys, in real processes: one holder for all racing callers, and after a kill or a
 * pause a typed error or a repeated call, never a stale answer.
 */
import { afterAll, describe, expect, test } from "vitest";
import type { KeyedOnLost } from "../../../schemas/index.ts";
import { connectBus, encode } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { counter, pyCounter, steady } from "../../apps/keyed.ts";
import { runCli } from "../../support/processes/cli.ts";
import { installation } from "../../support/processes/installation.ts";
import type { ServiceProcess } from "../../support/processes/stack.ts";
import { until } from "../../support/processes/stack.ts";

let api = "";
const world = installation({
  app: "keyed",
  orchestrators: 2,
  workers: 2,
  leases: true,
  prepare: async (stack) => {
    const gateway = await stack.run("gateway", { GATEWAY_PORT: "0", GATEWAY_RATE_LIMIT: "2000" });
    api = `${/"url":"(http:[^"]+)"/.exec(gateway.log())?.[1]?.replace(/\/$/, "")}/api`;
  },
});
afterAll(() => expect(world.leases.violations()).toEqual([]));

const config = { from: 0 };
let serial = 0;
/** A key that no earlier try of the test has used. */
const fresh = (name: string): string => `${name}-${++serial}`;
const keyed = (key: string, onLost: KeyedOnLost = "fail") =>
  world.client.session(counter, { key, config, onLost });
const code = (error: unknown) => (error as { code?: string }).code;

const post = (path: string, body: unknown, init: RequestInit = {}) =>
  fetch(`${api}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...init.headers },
    body: JSON.stringify(body),
    ...(init.signal && { signal: init.signal }),
  });
async function overHttp(
  path: string,
  body: unknown,
): Promise<{ status: number; code?: string; output?: unknown }> {
  const response = await post(path, body);
  const answer = (await response.json()) as { output?: unknown; error?: { code: string } };
  return {
    status: response.status,
    ...(answer.error ? { code: answer.error.code } : { output: answer.output }),
  };
}
async function overNats(subject: string, input: unknown, headers: Record<string, string> = {}) {
  const reply = await world.stack.bus.request(subject, encode(input), { timeoutMs: 40_000, headers });
  if (reply.kind !== "reply") throw new Error(reply.kind);
  return JSON.parse(new TextDecoder().decode(reply.body)) as { ok: boolean; output?: unknown };
}
const cli = (...args: string[]) =>
  runCli(["sessions", ...args], {
    env: { NATS_URL: world.stack.nats.url, ...world.stack.login("gateway"), NO_COLOR: "1" },
  });

/** The worker process in which the run of that name began last. */
async function holderOf(name: string, count = 1): Promise<ServiceProcess> {
  const line = (await world.journal.until(`slow ${name} `, count)).at(-1) ?? "";
  const holder = world.stack.of("worker").find(({ pid }) => pid === Number(line.split(" ")[3]));
  if (!holder) throw new Error(`no worker of ours wrote: ${line}`);
  return holder;
}

test("a thousand callers that race from clients, HTTP, NATS and orchestrations meet one holder", async () => {
  const buses = await Promise.all(
    Array.from({ length: 4 }, () =>
      connectBus({ url: world.stack.nats.url, name: "caller", announce: silent }),
    ),
  );
  try {
    const clients = buses.map((bus) => new Client({ bus, names: world.stack.names }));
    const body = { input: 1, config };
    const headers = { "Holdfast-Config": JSON.stringify(config) };
    const instances = await Promise.all(
      Array.from({ length: 5 }, (_, i) => world.start("adder", { key: "raced", times: 10 }, `adder-${i}`)),
    );
    const answers = await Promise.all(
      Array.from({ length: 950 }, async (_, i) => {
        if (i % 10 === 0) return (await overHttp("/sessions/steady/raced/add", body)).output;
        if (i % 10 === 1) return (await overNats("call.steady.raced.add", 1, headers)).output;
        return clients[i % 4]?.session(steady, { key: "raced", config }).add(1);
      }),
    );
    const epochs = new Set(answers.map((answer) => (answer as { epoch: number }).epoch));
    for (const { instanceId } of instances)
      for (const epoch of (await world.result<{ epochs: number[] }>(instanceId)).epochs) epochs.add(epoch);
    expect(epochs.size).toBe(1);
    expect(new Set(answers.map((answer) => (answer as { n: number }).n)).size).toBe(950);
    expect(await world.client.session(steady, { key: "raced" }).call("add", 0)).toMatchObject({ n: 1000 });
    expect(world.journal.lines("init raced ")).toHaveLength(1);
  } finally {
    for (const bus of buses) await bus.close();
  }
});

describe("the holder is lost with a call in it", () => {
  test.each([
    ["killed", (holder: ServiceProcess) => holder.kill("SIGKILL")],
    ["paused", (holder: ServiceProcess) => holder.pause()],
  ])("%s: the caller hears of it, or its call is made again, as the session says", async (how, lose) => {
    const first = keyed(`fail-${how}`)
      .slow({ name: `fail-${how}`, ms: 1500 })
      .catch(code);
    const lost = await holderOf(`fail-${how}`);
    lose(lost);
    await world.stack.run("worker");
    expect(await first).toBe("session_lost");
    expect(world.journal.lines(`slow fail-${how} `)).toHaveLength(1);
    expect(await keyed(`fail-${how}`).add(1)).toMatchObject({ n: 1 }); // opened anew
    if (how === "paused") lost.resume();

    const again = keyed(`reclaim-${how}`, "reclaim").slow({ name: `reclaim-${how}`, ms: 1500 });
    const holder = await holderOf(`reclaim-${how}`);
    lose(holder);
    await world.stack.run("worker");
    const { n, epoch } = await again;
    const epochs = world.journal.lines(`slow reclaim-${how} `).map((line) => Number(line.split(" ")[2]));
    expect({ n, epoch }).toEqual({ n: 1, epoch: epochs.at(-1) });
    expect(new Set(epochs).size).toBe(2);
    if (how !== "paused") return;
    holder.resume();
    // It wakes up with an answer that is accepted nowhere.
    expect(await keyed(`reclaim-${how}`).add(1)).toMatchObject({ n: 2, epoch });
  });
});

describe("over HTTP", () => {
  const path = (key: string, call: string) => `/sessions/counter/${key}/${call}`;

  test("a call, what it writes, how it stands and its close", async () => {
    expect(await overHttp(path("web", "add"), { input: 2, config, ttl: "1h" })).toMatchObject({
      status: 200,
      output: { n: 2 },
    });
    const streamed = await post(
      path("web", "tell"),
      { input: ["a", "b"] },
      { headers: { accept: "text/event-stream" } },
    );
    expect(await streamed.text()).toBe(
      'event: chunk\ndata: "a"\n\nevent: chunk\ndata: "b"\n\nevent: result\ndata: {"ok":true,"output":2}\n\n',
    );
    const described = await (await fetch(`${api}/keys/counter/web`)).json();
    expect(described).toMatchObject({ session: { phase: "active", key: "web", type: "counter" } });
    expect(await (await post(path("web", "close"), {})).json()).toEqual({ ok: true, closed: true });
    await until("it is closed", async () => (await keyed("web").describe()).record.phase === "closed");
  });

  test("what is wrong is refused by name, and nothing is opened", async () => {
    const key = fresh("k");
    const refused = async (where: string, body: unknown) => {
      const { status, code } = await overHttp(where, body);
      return [status, code];
    };
    expect(await refused("/sessions/nothing/k/add", { input: 1 })).toEqual([404, "unknown_session_type"]);
    expect(await refused(path(key, "multiply"), { input: 1, config })).toEqual([404, "unknown_call"]);
    expect(await refused(path(key, "add"), { input: "one", config })).toEqual([400, "invalid_input"]);
    expect(await refused(path(key, "add"), { input: 1, config: { from: "x" } })).toEqual([
      400,
      "invalid_config",
    ]);
    expect(await refused(path("a%20b", "add"), { input: 1, config })).toEqual([400, "invalid_key"]);
    expect(await refused(path("x".repeat(129), "add"), { input: 1, config })).toEqual([400, "invalid_key"]);
    expect(await refused(path(key, "add"), { input: 1, config, ttl: "soon" })).toEqual([
      400,
      "invalid_duration",
    ]);
    expect(await refused(path(key, "close"), {})).toEqual([404, "session_not_found"]);
    expect(world.journal.lines(`init ${key} `)).toEqual([]);
    expect((await fetch(`${api}/keys/counter/${key}`)).status).toBe(404);
    await keyed(key).add(1);
    expect(await refused(path(key, "add"), { input: 1, config: { from: 1 } })).toEqual([
      409,
      "session_config_conflict",
    ]);
    expect(await refused(path(key, "fail"), { config })).toEqual([400, "no_good"]);
  });

  test("whoever hangs up has its call cancelled, and the session stays", async () => {
    const key = fresh("gone");
    for (const accept of ["application/json", "text/event-stream"]) {
      const name = `${key}-${accept.length}`;
      const hangUp = new AbortController();
      const body = { input: { name, ms: 60_000 }, config };
      const calling = post(path(key, "slow"), body, { signal: hangUp.signal, headers: { accept } });
      const over = calling.then((response) => response.text()).catch((error: Error) => error.name);
      await world.journal.until(`slow ${name} `);
      hangUp.abort();
      expect(await over).toBe("AbortError");
      await world.journal.until(`cancelled ${name}`);
    }
    expect(await keyed(key).add(0)).toMatchObject({ n: 2 });
    expect(world.journal.lines(`init ${key} `)).toHaveLength(1);
  });
});

test("from the command line", async () => {
  const called = await cli("call", "counter", "typed", "add", "5", "--config", '{"from":10}', "--json");
  expect(JSON.parse(called.stdout)).toMatchObject({ n: 15 });
  const streamed = await cli("call", "counter", "typed", "tell", '["a","b"]', "--stream", "--json");
  expect(
    streamed.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([{ chunk: "a" }, { chunk: "b" }, 2]);
  const described = await cli("describe", "counter", "typed", "--json");
  expect(JSON.parse(described.stdout)).toMatchObject({ record: { type: "counter", phase: "active" } });
  expect((await cli("list", "--key", "typed")).stdout).toContain("counter");
  const wrong = await cli("call", "counter", "typed", "add", '"x"');
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("invalid_input");
  expect((await cli("close", "counter", "typed", "--yes")).code).toBe(0);
  await until("it is closed", async () => {
    const { record } = await world.client.session("counter", { key: "typed" }).describe();
    return record.phase === "closed";
  });
});

test("a state in Python belongs to a key like any other; a command that ends at once is told with its last words", async () => {
  const session = world.client.session(pyCounter, { key: "py" });
  expect(await session.count(2)).toBe(2);
  expect((await overNats("call.py-counter.py.count", 3)).output).toBe(5);
  await expect(world.client.session("no-weights", { key: "k" }).call("ask")).rejects.toMatchObject({
    code: "session_init_failed",
    message: expect.stringMatching(/\/bin\/sh -c .* ended with exit code 5[\s\S]*no weights here/),
  });
});
