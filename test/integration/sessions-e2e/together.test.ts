/** Sessions beside each other and beside everything else an orchestration does. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Journal } from "../../support/journal.ts";
import { checkSessionEvents, LeaseLog } from "../../support/lease-log.ts";
import { Stack, until } from "../../support/stack.ts";
import { Streams } from "../../support/streams.ts";

const app = fileURLToPath(new URL("../../apps/held.ts", import.meta.url));

describe.each([
  ["live", "false"],
  ["always replaying", "true"],
])("%s", (_mode, alwaysReplay) => {
  const journal = new Journal();
  let stack: Stack;
  let streams: Streams;
  let leases: LeaseLog;
  beforeAll(async () => {
    const env = { ...journal.env, HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY: alwaysReplay };
    stack = await Stack.start({ app, workers: 2, env });
    streams = new Streams(stack);
    leases = await LeaseLog.start(stack);
  });
  afterAll(async () => {
    await leases?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
    journal[Symbol.dispose]();
  });

  const start = (name: string, input: unknown, id: string) => stack.client.start(name, input, { id });
  const result = async <T>(id: string): Promise<T> => {
    const value = await stack.client.result<T>(id, { timeout: "40s" });
    await streams.checkEnded([id]);
    checkSessionEvents(await streams.history(id));
    leases.checkOwners();
    return value;
  };

  it("two models in one orchestration, joined in parallel", async () => {
    await start("two-models", { n: 5 }, "two");
    expect(await result("two")).toEqual({
      counts: [1, 2, 3, 4, 5],
      words: Array.from({ length: 5 }, (_, i) => `hello, n${i} (${i + 1})`),
      sessions: ["active", "active"],
    });
  });

  it("a session goes along with continue-as-new, and its state with it", async () => {
    await start("carried", { left: 6 }, "carried");
    const { value, id, execution } = await result<{ value: number; id: string; execution: number }>(
      "carried",
    );
    expect({ value, execution }).toEqual({ value: 6, execution: 6 });
    expect(journal.lines(`init ${id}`)).toHaveLength(1);
    await journal.until(`shutdown ${id}`);
    expect(leases.of(id)).toHaveLength(1);
  });

  it("timers, signals, joins and activities mixed with calls: the same story each time", async () => {
    await start("woven", { rounds: 4 }, "woven");
    for (let i = 0; i < 4; i++) await stack.client.signal("woven", "word", `w${i}`);
    const trace = await result<string[]>("woven");
    const uuid = expect.stringMatching(/^[0-9a-f]{4}$/);
    expect(trace).toEqual(
      [0, 1, 2, 3].flatMap((i) => [`count ${i + 1}`, `hey, r${i} (${i + 1})`, `${i + 1}`, uuid, `w${i}`]),
    );
  });

  it("close stops what runs, twice is once, and the session cannot be used again", async () => {
    await start("closer", { how: "count", ms: 60_000 }, "closer");
    const [line = ""] = await journal.until("count closer");
    const [, id = "", , epoch] = line.split(" ");
    await stack.client.signal("closer", "close");
    await journal.until(`aborted ${id}`);
    await journal.until(`shutdown ${id}`);
    await stack.client.signal("closer", "end");
    expect(await result("closer")).toEqual({
      outcome: "cancelled",
      after: "session_unusable",
      state: "closed",
    });
    expect(journal.lines(`shutdown ${id}`)).toEqual([`shutdown ${id} ${epoch}`]);
    await until("the lease is given back", () => leases.of(id)[0]?.end?.kind === "released");
  });

  it("close does not wait for code that does not listen, and ignores what it says later", async () => {
    await start("closer", { how: "stubborn", ms: 4000 }, "deaf");
    const [line = ""] = await journal.until("stubborn deaf");
    const [, id = ""] = line.split(" ");
    await stack.client.signal("deaf", "close");
    await stack.client.signal("deaf", "end");
    expect(await result("deaf")).toEqual({
      outcome: "cancelled",
      after: "session_unusable",
      state: "closed",
    });
    expect(journal.lines(`stubborn ended ${id}`), "it was not waited for").toEqual([]);
    await journal.until(`stubborn ended ${id}`);
    await streams.untilQuiet();
    await streams.checkEnded(["deaf"]);
    expect(await streams.kinds("deaf")).not.toContain("activity.completed");
  });

  it.each(["cancel", "terminate"] as const)("%s closes the sessions of an instance", async (verb) => {
    const id = `${verb}-keeper`;
    await start("keeper", {}, id);
    const [line = ""] = await journal.until(`count ${id}`);
    const [, sessionId = ""] = line.split(" ");
    await stack.client[verb](id);
    await expect(stack.client.result(id, { timeout: "20s" })).rejects.toMatchObject({
      code: verb === "cancel" ? "cancelled" : "terminated",
    });
    await journal.until(`shutdown ${sessionId}`);
    await until("the lease is given back", () => leases.of(sessionId)[0]?.end?.kind === "released");
    expect((await streams.kinds(id)).slice(-2)).toEqual([
      "session.closed",
      verb === "cancel" ? "instance.cancelled" : "instance.terminated",
    ]);
  });

  it("leaves nothing behind", async () => {
    await streams.untilQuiet();
    await until(
      "no session is held",
      async () => (await stack.client.sessions.list({ phase: "active" })).length === 0,
    );
    expect(leases.holdings.filter((holding) => holding.end === undefined)).toEqual([]);
  });
});
