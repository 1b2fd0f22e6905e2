/** Sessions beside each other and beside everything else an orchestration does. */
import { describe, expect, it } from "vitest";
import { installation } from "../../support/processes/installation.ts";
import { until } from "../../support/processes/stack.ts";

describe.each([
  ["live", "false"],
  ["always replaying", "true"],
])("%s", (_mode, alwaysReplay) => {
  const world = installation({
    ...{ app: "held", workers: 2, leases: true },
    env: { HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY: alwaysReplay },
  });
  const { journal, start, result } = world;

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
    expect(world.leases.of(id)).toHaveLength(1);
  });

  it("timers, signals, joins and activities mixed with calls: the same story each time", async () => {
    await start("woven", { rounds: 4 }, "woven");
    for (let i = 0; i < 4; i++) await world.client.signal("woven", "word", `w${i}`);
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
    await world.client.signal("closer", "close");
    await journal.until(`aborted ${id}`);
    await journal.until(`shutdown ${id}`);
    await world.client.signal("closer", "end");
    expect(await result("closer")).toEqual({
      outcome: "cancelled",
      after: "session_unusable",
      state: "closed",
    });
    expect(journal.lines(`shutdown ${id}`)).toEqual([`shutdown ${id} ${epoch}`]);
    await until("the lease is given back", () => world.leases.of(id)[0]?.end?.kind === "released");
  });

  it("close does not wait for code that does not listen, and ignores what it says later", async () => {
    await start("closer", { how: "stubborn", ms: 4000 }, "deaf");
    const [line = ""] = await journal.until("stubborn deaf");
    const [, id = ""] = line.split(" ");
    await world.client.signal("deaf", "close");
    await world.client.signal("deaf", "end");
    expect(await result("deaf")).toEqual({
      outcome: "cancelled",
      after: "session_unusable",
      state: "closed",
    });
    expect(journal.lines(`stubborn ended ${id}`), "it was not waited for").toEqual([]);
    await journal.until(`stubborn ended ${id}`);
    await world.streams.untilQuiet();
    await world.streams.checkEnded(["deaf"]);
    expect(await world.streams.kinds("deaf")).not.toContain("activity.completed");
  });

  it.each(["cancel", "terminate"] as const)("%s closes the sessions of an instance", async (verb) => {
    const id = `${verb}-keeper`;
    await start("keeper", {}, id);
    const [line = ""] = await journal.until(`count ${id}`);
    const [, sessionId = ""] = line.split(" ");
    await world.client[verb](id);
    await expect(world.client.result(id, { timeout: "20s" })).rejects.toMatchObject({
      code: verb === "cancel" ? "cancelled" : "terminated",
    });
    await journal.until(`shutdown ${sessionId}`);
    await until("the lease is given back", () => world.leases.of(sessionId)[0]?.end?.kind === "released");
    expect((await world.streams.kinds(id)).slice(-2)).toEqual([
      "session.closed",
      verb === "cancel" ? "instance.cancelled" : "instance.terminated",
    ]);
  });

  it("leaves nothing behind", async () => {
    await world.streams.untilQuiet();
    await until(
      "no session is held",
      async () => (await world.client.sessions.list({ phase: "active" })).length === 0,
    );
    expect(world.leases.holdings.filter((holding) => holding.end === undefined)).toEqual([]);
  });
});
