/** One loaded model serves many orchestrations, on as many workers as its calls need. */
import { describe, expect, it } from "vitest";
import { poolInstance } from "../../../schemas/index.ts";
import { historyViolations } from "../../../shared/verify/index.ts";
import type { Answer } from "../../apps/pooled.ts";
import { installation } from "../../support/processes/installation.ts";
import { until } from "../../support/processes/stack.ts";

describe.each([
  ["live", "false"],
  ["always replaying", "true"],
])("%s", (_mode, alwaysReplay) => {
  const world = installation({
    ...{ app: "pooled", workers: 2, leases: true },
    env: {
      ...{ WORKER_LEASE_TTL: "2s", WORKER_ACK_WAIT: "1s" },
      HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY: alwaysReplay,
    },
  });
  const { journal, start, result } = world;

  const inits = (name: string) => journal.lines(`init ${name} `);
  const workersOf = (name: string) => new Set(inits(name).map((line) => line.split(" ")[3]));
  const gone = (name: string, count: number) => journal.until(`shutdown ${name} `, count);
  const keeperOf = async (user: string): Promise<string> => {
    const joined = (await world.streams.events(user)).find((event) => event.kind === "pool.joined");
    return poolInstance(joined?.poolId ?? "");
  };

  it("two orchestrations share one loaded model", async () => {
    const pool = { name: "one", max: 1 };
    await Promise.all([
      start("asking", { pool, calls: 3, ms: 20 }, "one-a"),
      start("asking", { pool, calls: 3, ms: 20 }, "one-b"),
    ]);
    const answers = [...(await result<Answer[]>("one-a")), ...(await result<Answer[]>("one-b"))];
    expect(inits("one")).toHaveLength(1);
    expect(new Set(answers.map(({ member }) => member)).size).toBe(1);
    expect(answers.map(({ asked }) => asked).sort()).toEqual([1, 2, 3, 4, 5, 6]);
    await gone("one", 1);
  });

  it("the minimum is warm before the first call, on different workers", async () => {
    await start("asking", { pool: { name: "warm", min: 2, max: 2 }, calls: 2, stay: true }, "warm");
    await journal.until("init warm ", 2);
    expect(workersOf("warm").size).toBe(2);
    expect(journal.lines("ask warm ")).toEqual([]);
    await world.client.signal("warm", "ask");
    await world.client.signal("warm", "go");
    expect(await result("warm")).toHaveLength(2);
    await gone("warm", 2);
  });

  it("grows while calls wait, spreads, shrinks when idle, and goes after its last user", async () => {
    const pool = { name: "tide", min: 1, max: 3 };
    await start("asking", { pool, calls: 16, ms: 500, stay: true }, "tide");
    await world.client.signal("tide", "ask");
    await journal.until("ask tide ", 16);
    await journal.until("init tide ", 3);
    expect(inits("tide")).toHaveLength(3);
    expect(workersOf("tide").size).toBe(2);
    // Still joined, but without calls: members beyond the minimum park and are closed.
    await gone("tide", 2);
    const keeper = await keeperOf("tide");
    expect(await world.client.list({ prefix: keeper, engine: true })).toMatchObject([
      { instanceId: keeper, name: "holdfast-pool", status: "running" },
    ]);
    await world.client.signal("tide", "go");
    const answers = await result<Answer[]>("tide");
    // The last to come may find nothing left to do.
    expect(new Set(answers.map(({ member }) => member)).size).toBeGreaterThan(1);
    await gone("tide", 3);
    await until("all members are closed", async () => {
      const kinds = (await world.streams.events(keeper)).flatMap((event) =>
        event.kind === "session.opened" || event.kind === "session.closed" ? [event.kind] : [],
      );
      return kinds.filter((kind) => kind === "session.closed").length === kinds.length / 2;
    });
    expect(historyViolations(await world.streams.history(keeper))).toEqual([]);
  });

  it("calls of many instances run as one batch", async () => {
    const ids = Array.from({ length: 6 }, (_, i) => `shout-${i}`);
    await Promise.all(ids.map((id) => start("shouting", { name: "loud", max: 1 }, id)));
    for (const id of ids) expect(await result(id)).toBe(id.toUpperCase());
    const sizes = journal.lines("batch loud ").map((line) => Number(line.split(" ")[2]));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(6);
    expect(Math.max(...sizes)).toBeGreaterThan(1);
    await gone("loud", 1);
  });

  it("a pool outlives continue-as-new of its user", async () => {
    await start("generations", { pool: { name: "ages", max: 1 }, left: 3 }, "ages");
    expect(await result("ages")).toEqual({ asked: 4, execution: 4 });
    expect(inits("ages")).toHaveLength(1);
    await gone("ages", 1);
  });

  it("calls nobody waits for any more do not run", async () => {
    const pool = { name: "vain", max: 1 };
    await start("asking", { pool, calls: 5, ms: 60_000 }, "vain");
    await journal.until("ask vain ");
    await world.client.cancel("vain");
    await expect(world.client.result("vain", { timeout: "20s" })).rejects.toMatchObject({
      code: "cancelled",
    });
    await start("asking", { pool, calls: 1 }, "after-vain");
    expect(await result("after-vain")).toHaveLength(1);
    expect(journal.lines("ask vain vain-")).toHaveLength(1);
    await gone("vain", 1);
  });

  it("a model that cannot be loaded is tried again, and its keeper says why", async () => {
    await start("asking", { pool: { name: "never", broken: true }, calls: 1, stay: true }, "never");
    const keeper = await until("it joined", async () => {
      const joined = (await world.streams.kinds("never").catch((): string[] => [])).includes("pool.joined");
      return joined && keeperOf("never");
    });
    await until("the keeper says why", async () => {
      const [view] = await world.client.list({ prefix: keeper, engine: true });
      return JSON.stringify(view?.customStatus ?? "").includes("there is no such model");
    });
    await world.client.cancel("never");
    await expect(world.client.result("never", { timeout: "20s" })).rejects.toMatchObject({
      code: "cancelled",
    });
  });

  it("the keeper is not offered to people who misspell an orchestration", async () => {
    await start("askign", null, "misspelt");
    await expect(world.client.result("misspelt", { timeout: "20s" })).rejects.toMatchObject({
      message: expect.not.stringContaining("holdfast-pool"),
    });
  });

  it("leaves nothing behind", async () => {
    await world.streams.untilQuiet();
    await until(
      "no session is held",
      async () => (await world.client.sessions.list({ phase: "active" })).length === 0,
    );
    expect(world.leases.violations()).toEqual([]);
    expect(await world.streams.deadLetters()).toEqual([]);
  });
});
