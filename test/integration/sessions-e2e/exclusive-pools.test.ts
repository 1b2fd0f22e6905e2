/** One warm member for one orchestration at a time: borrowed, used like a session, given back. */
import { describe, expect, it } from "vitest";
import { type HistoryEvent, PoolSignal, poolInstance } from "../../../schemas/index.ts";
import { historyViolations } from "../../../shared/verify/index.ts";
import type { Sat } from "../../apps/lent.ts";
import { installation } from "../../support/processes/installation.ts";
import { until } from "../../support/processes/stack.ts";
import { checkTurns } from "../../support/worlds/seats.ts";

/** The borrowers that joined, as the lender recorded them. */
function joinedBy(event: HistoryEvent): string[] {
  const said = event.kind === "signal.received" && "json" in event.payload ? event.payload.json : undefined;
  const signal = PoolSignal.safeParse(said);
  return signal.data?.kind === "join" && signal.data.borrower ? [signal.data.borrower.instanceId] : [];
}

describe.each([
  ["live", "false"],
  ["always replaying", "true"],
])("%s", (_mode, alwaysReplay) => {
  const world = installation({
    ...{ app: "lent", workers: 2, leases: true },
    env: { WORKER_LEASE_TTL: "2s", HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY: alwaysReplay },
  });
  const { journal, start } = world;

  /** Not the shared one: the events of a borrowed session are in the history of its lender. */
  const result = async <T>(id: string): Promise<T> => {
    const value = await world.client.result<T>(id, { timeout: "40s" });
    await world.streams.checkEnded([id]);
    return value;
  };
  const inits = (name: string) => journal.lines(`init ${name} `);
  const gone = (name: string, count: number) => journal.until(`shutdown ${name} `, count);
  const lenderOf = async (user: string): Promise<string> => {
    const joined = (await world.streams.events(user)).find((event) => event.kind === "pool.joined");
    return poolInstance(joined?.poolId ?? "");
  };
  const lenderSays = (lender: string, what: Record<string, number>) =>
    until(`the lender says ${JSON.stringify(what)}`, async () => {
      const [view] = await world.client.list({ prefix: lender, engine: true });
      const status = view?.customStatus as Record<string, number> | undefined;
      return Object.entries(what).every(([key, value]) => status?.[key] === value);
    });

  it("the next waits until the one before has given it back, and finds it warm", async () => {
    const pool = { name: "one", max: 1 };
    await start("sitting", { pool, times: 2, stay: true }, "one-a");
    await journal.until("sit one one-a ", 2);
    await start("sitting", { pool }, "one-b");
    const lender = await lenderOf("one-a");
    await lenderSays(lender, { lent: 1, waiting: 1 });
    const [record] = await world.client.sessions.list({ phase: "active" });
    expect(record).toMatchObject({ instanceId: lender, lentTo: "one-a" });
    expect(journal.lines("sit one one-b ")).toEqual([]);
    await world.client.signal("one-a", "go");
    const [first, second] = [await result<Sat[]>("one-a"), await result<Sat[]>("one-b")];
    expect(inits("one")).toHaveLength(1);
    expect(second).toMatchObject([{ member: first[0]?.member, epoch: first[0]?.epoch, before: ["one-a"] }]);
    await gone("one", 1);
    expect(await world.streams.kinds("one-b")).toEqual([
      ...["instance.started", "pool.joined", "pool.lent", "activity.scheduled", "activity.completed"],
      ...["pool.left", "instance.completed"],
    ]);
  });

  it("the minimum is warm before the second borrower comes, on different workers", async () => {
    const pool = { name: "warm", min: 2, max: 2 };
    await start("sitting", { pool, stay: true }, "warm-a");
    await journal.until("init warm ", 2);
    expect(new Set(inits("warm").map((line) => line.split(" ")[3])).size).toBe(2);
    await start("sitting", { pool }, "warm-b");
    const [other] = await result<Sat[]>("warm-b");
    expect(inits("warm")).toHaveLength(2);
    await world.client.signal("warm-a", "go");
    const [own] = await result<Sat[]>("warm-a");
    expect(own?.member).not.toBe(other?.member);
    await gone("warm", 2);
  });

  it("grows up to the maximum while borrowers wait, serves them in order, shrinks when idle", async () => {
    const pool = { name: "tide", min: 1, max: 3, linger: "4s" };
    const ids = Array.from({ length: 9 }, (_, i) => `tide-${i}`);
    for (const id of ids) await start("sitting", { pool, times: 2, ms: 100 }, id);
    const sat = (await Promise.all(ids.map((id) => result<Sat[]>(id)))).flat();
    expect(inits("tide")).toHaveLength(3);
    expect(new Set(sat.map(({ workerId }) => workerId)).size).toBe(2);
    checkTurns(journal, "tide");
    const lender = await lenderOf("tide-0");
    const told = await world.streams.events(lender);
    const served = told.flatMap((event) =>
      event.kind === "session.lent" ? [event.lending.to.instanceId as string] : [],
    );
    expect(served, "in the order they came").toEqual(told.flatMap(joinedBy));
    // One borrower stays, so the pool stays; members without a borrower go.
    await start("sitting", { pool, stay: true }, "tide-stays");
    await gone("tide", 2);
    await lenderSays(lender, { members: 1, lent: 1 });
    await world.client.signal("tide-stays", "go");
    await result("tide-stays");
    await gone("tide", 3);
    await lenderSays(lender, { members: 0, users: 0 });
    expect(historyViolations(await world.streams.history(lender))).toEqual([]);
  });

  it("continue-as-new gives it back to whoever waits", async () => {
    const pool = { name: "ages", max: 1 };
    await start("generations", { pool, left: 2 }, "ages-a");
    await start("generations", { pool, left: 2 }, "ages-b");
    await result("ages-a");
    await result("ages-b");
    const users = journal.lines("sit ages ").map((line) => line.split(" ")[2]);
    expect([...users].sort()).toEqual(["a", "b"].flatMap((who) => [1, 2, 3].map((n) => `ages-${who}-${n}`)));
    expect(inits("ages")).toHaveLength(1);
    await gone("ages", 1);
  });

  it.each(["cancel", "terminate"] as const)("a borrower that is ended by %s blocks nobody", async (how) => {
    const pool = { name: how, max: 1 };
    await start("sitting", { pool, ms: 60_000 }, `${how}-a`);
    await journal.until(`sit ${how} `);
    await start("sitting", { pool, ms: 60_000 }, `${how}-waits`);
    await start("sitting", { pool }, `${how}-b`);
    await lenderSays(await lenderOf(`${how}-a`), { waiting: 2 });
    await world.client[how](`${how}-waits`);
    await world.client[how](`${how}-a`);
    expect(await result<Sat[]>(`${how}-b`)).toMatchObject([{ before: [] }]);
    expect(journal.lines(`sit ${how} ${how}-waits `)).toEqual([]);
    expect(inits(how)).toHaveLength(1);
    await gone(how, 1);
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
