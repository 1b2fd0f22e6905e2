/** Sessions, workers and streams from outside, on a whole installation with an application of its own folder. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { main } from "../../services/cli/main.ts";
import { Client, type StreamItem } from "../../shared/sdk/index.ts";
import { type Dev, startDev, until } from "../support/processes/cli.ts";

const app = `
import { call, defineOrchestration, defineSession } from "holdfast";
import { z } from "zod";

export const counter = defineSession("counter", {
  config: z.object({ from: z.number() }),
  init: async (_ctx, { from }) => ({ value: from }),
  snapshot: (state) => ({ value: state.value }),
  calls: {
    add: call({
      input: z.number(),
      output: z.number(),
      run: async (state, n, ctx) => {
        state.value += n;
        await ctx.stream.write("value " + state.value);
        return state.value;
      },
    }),
    hear: call({
      input: z.number(),
      output: z.array(z.unknown()),
      run: async (_state, n, ctx) => {
        const heard = [];
        for await (const event of ctx.session.events) if (heard.push(event) === n) break;
        return heard;
      },
    }),
  },
});

const open = (ctx) => ctx.openSession(counter, { id: "s-" + ctx.instanceId, config: { from: 100 }, metadata: { team: "a" } });

export const count = defineOrchestration("count", {
  async run(ctx, times) {
    await using session = await open(ctx);
    for (let i = 0; i < times; i++) await session.add(1);
    await ctx.waitForSignal("go");
    return await session.add(1);
  },
});

export const listen = defineOrchestration("listen", {
  async run(ctx, times) {
    await using session = await open(ctx);
    return await session.hear(times);
  },
});
`;

describe("a whole installation from outside", () => {
  let dir: string;
  let dev: Dev;
  let client: Client;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "holdfast-live-"));
    await writeFile(join(dir, "app.ts"), app);
    dev = await startDev(dir, { args: ["--app", "app.ts"] });
    client = await Client.connect({ url: dev.ready.natsUrl });
  });
  afterAll(async () => {
    await client?.close();
    dev?.signal("SIGTERM");
    await dev?.ended();
    await rm(dir, { recursive: true, force: true });
  });

  const active = (id: string) =>
    until(async () => {
      const [record] = await client.sessions.list({ instanceId: id });
      return record?.phase === "active";
    }, `the session of ${id} is active`);
  /** Its first call is over: what comes next meets an idle session. */
  const counted = async (id: string) => {
    await active(id);
    await until(
      async () => (await client.history(id)).some(({ kind }) => kind === "activity.completed"),
      `the call of ${id} is over`,
    );
  };
  const cli = async (...args: string[]) => {
    let stdout = "";
    const code = await main(
      [...args, "--nats-url", dev.ready.natsUrl],
      {},
      { stdout: { write: (text: string) => (stdout += text) }, stderr: { write: () => true } },
    );
    return { code, stdout };
  };

  it("reads a stream live, from an offset, and after the end", async () => {
    const handle = await client.start("count", 3, { id: "st" });
    const items: StreamItem[] = [];
    const reading = (async () => {
      for await (const item of client.stream("st")) items.push(item);
    })();
    await until(() => items.length === 3, "three chunks");
    await handle.signal("go");
    expect(await handle.result()).toBe(104);
    await reading;
    expect(items.map(({ chunk }) => chunk)).toEqual(["value 101", "value 102", "value 103", "value 104"]);
    const rest: unknown[] = [];
    for await (const { chunk } of client.stream("st", { after: items[1]?.offset })) rest.push(chunk);
    expect(rest).toEqual(["value 103", "value 104"]);
    expect((await cli("stream", "st")).stdout).toBe("value 101\nvalue 102\nvalue 103\nvalue 104\n");
    const [, , third] = (await cli("stream", "st", "--json")).stdout.trimEnd().split("\n");
    const { offset } = JSON.parse(third ?? "{}") as { offset: number };
    expect((await cli("stream", "st", "--after", String(offset))).stdout).toBe("value 104\n");
  });

  it("lists, describes and explains a session", async () => {
    await client.start("count", 1, { id: "look" });
    await active("look");
    const { record, lease, explanation } = await client.session("s-look").describe();
    expect(record).toMatchObject({
      type: "counter",
      instanceId: "look",
      metadata: { team: "a" },
      attachment: 1,
    });
    expect(lease).toMatchObject({ kind: "held" });
    expect(explanation[0]).toMatch(/^held by .* \(epoch \S+\)/);
    expect((await cli("sessions", "list", "--phase", "active")).stdout).toMatch(/s-look +counter +active/);
    expect((await cli("sessions", "describe", "s-look")).stdout).toContain("instance    look");
    expect(JSON.parse((await cli("sessions", "explain", "s-look", "--json")).stdout)).toMatchObject({
      phase: "active",
    });
    await client.signal("look", "go");
    await client.result("look");
    await until(
      async () => (await client.session("s-look").describe()).record.phase === "closed",
      "it is closed",
    );
    await expect(client.session("s-look").send("late")).rejects.toMatchObject({ code: "session_unusable" });
  });

  it("sends events to the live state, in order", async () => {
    await client.start("listen", 3, { id: "ears" });
    await active("ears");
    for (let n = 1; n <= 3; n++) await client.session("s-ears").send("note", { n });
    expect(await client.result("ears", { timeout: "20s" })).toEqual(
      [1, 2, 3].map((n) => ({ name: "note", payload: { n } })),
    );
  });

  it("evicts: the instance hears that the session was lost", async () => {
    await client.start("count", 1, { id: "out" });
    await counted("out");
    expect((await cli("sessions", "evict", "s-out", "--reason", "wanted elsewhere", "--yes")).code).toBe(0);
    await until(async () => {
      const { record } = await client.session("s-out").describe();
      return record.phase === "lost" && record.lost?.reason === "evicted";
    }, "it is lost");
    await expect(client.session("s-out").send("x")).rejects.toMatchObject({
      name: "SessionLostError",
      reason: "evicted",
    });
    await client.signal("out", "go");
    await expect(client.result("out")).rejects.toMatchObject({ code: "session_lost", reason: "evicted" });
  });

  it("drains a session: its holder gives it up when what runs is done", async () => {
    await client.start("count", 1, { id: "dry" });
    await counted("dry");
    expect((await cli("sessions", "drain", "s-dry", "--yes")).code).toBe(0);
    await until(async () => {
      const { record } = await client.session("s-dry").describe();
      return record.lost?.reason === "drained";
    }, "it was given up");
  });

  it("says how long init took", async () => {
    await client.start("count", 0, { id: "timed" });
    await active("timed");
    const [record] = await client.sessions.list({ instanceId: "timed" });
    expect(record?.initMs).toBeGreaterThanOrEqual(0);
  });

  it("answers for sessions and workers that are not there", async () => {
    await expect(client.session("ghost").describe()).rejects.toMatchObject({ code: "session_not_found" });
    await expect(client.session("ghost").evict()).rejects.toMatchObject({ code: "session_not_found" });
    await expect(client.session("a.b").send("x")).rejects.toMatchObject({ code: "invalid_id" });
    await expect(client.workers.drain("ghost")).rejects.toMatchObject({ code: "worker_not_found" });
    expect((await cli("sessions", "describe", "ghost")).code).toBe(3);
    expect((await cli("workers", "drain", "ghost", "--yes")).code).toBe(3);
  });

  it("drains a worker, which then goes and is replaced", async () => {
    const before = await client.workers.list();
    expect(before).toHaveLength(2);
    const [first] = before;
    expect((await cli("workers", "list")).stdout).toContain(first?.workerId ?? "?");
    expect((await cli("workers", "drain", first?.workerId ?? "?", "--yes")).code).toBe(0);
    await until(async () => {
      const alive = (await client.workers.list()).map(({ workerId }) => workerId);
      return !alive.includes(first?.workerId ?? ("?" as never)) && alive.length === 2;
    }, "another worker has taken its place");
  });
});
