/** The keeper of a pool, turn by turn: its users, its members, and when it opens one more. */
import { expect } from "vitest";
import type { PoolSignal } from "../../../schemas/index.ts";
import { poolKeeper } from "../../../services/orchestrator/pools/pool-keeper.ts";
import { call, collectApp, defineSession } from "../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  held,
  initFailed,
  parked,
  signal,
  start,
  wake,
} from "../../support/worlds/instance-messages.ts";

const model = defineSession("model", {
  idleTimeout: "7s",
  creationTimeout: "20s",
  init: () => ({}),
  calls: { ask: call({ run: () => 0 }) },
});
const app = { model, keeper: poolKeeper(collectApp({ model })) };
const options = { instanceId: "pool-p" };

const begin = (bench: Bench, pool: { min?: number; max?: number; lingerMs?: number } = {}) =>
  bench.turn(start("holdfast-pool", { poolId: "p", pool: { type: "model", min: 1, max: 3, ...pool } }));
const say = (bench: Bench, said: PoolSignal) => bench.turn(signal("pool", said));
const join = (bench: Bench, user: string, more: { min?: number; max?: number; lingerMs?: number } = {}) =>
  say(bench, { kind: "join", user, min: 1, max: 3, lingerMs: 10_000, ...more });
const leave = (bench: Bench, user: string) => say(bench, { kind: "leave", user });
const grow = (bench: Bench) => say(bench, { kind: "grow", waitedMs: 500 });
const ready = (bench: Bench, id: string) => bench.turn(activated(id, held(1, Number(id.slice(3)))));
const pass = (bench: Bench, ms: number) => {
  bench.advance(ms);
  return bench.turn(wake());
};
const open = (bench: Bench) =>
  [...bench.state.sessions.values()]
    .filter(({ phase }) => phase.kind !== "closed" && phase.kind !== "failed")
    .map(({ sessionId }) => sessionId);

scenario(
  "the minimum is there before anybody calls; more only while calls wait",
  app,
  async (bench) => {
    await begin(bench, { min: 2 });
    expect(open(bench), "nobody uses it yet").toEqual([]);
    await join(bench, "a", { min: 2 });
    expect(open(bench)).toEqual(["p-m1", "p-m2"]);
    const [first] = bench.state.sessions.values();
    expect(first?.options).toMatchObject({
      ...{ idleTimeoutMs: 0, onLost: "reclaim", affinityKey: "p-m1" },
      metadata: { "holdfast-pool": "p" },
    });
    await ready(bench, "p-m1");
    await ready(bench, "p-m2");
    await grow(bench);
    expect(open(bench)).toEqual(["p-m1", "p-m2", "p-m3"]);
    expect(bench.state.sessions.get("p-m3")?.options.idleTimeoutMs, "spares park by their type").toBe(7000);
    await ready(bench, "p-m3");
    await grow(bench);
    expect(open(bench), "as big as it may be").toHaveLength(3);
  },
  options,
);

scenario(
  "it grows by doubling at most, and not while enough are on their way",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a", { max: 9 });
    for (let i = 0; i < 3; i++) await grow(bench);
    expect(open(bench), "the first is still coming").toHaveLength(1);
    await ready(bench, "p-m1");
    for (let i = 0; i < 3; i++) await grow(bench);
    expect(open(bench)).toHaveLength(2);
    await ready(bench, "p-m2");
    for (let i = 0; i < 3; i++) await grow(bench);
    expect(open(bench)).toHaveLength(4);
  },
  options,
);

scenario(
  "a spare that parked is let go, and may be replaced by another",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await ready(bench, "p-m1");
    await grow(bench);
    bench.advance(1000);
    await bench.turn(activated("p-m2", held(1, 77)));
    await bench.turn(parked("p-m2", held(1, 77)));
    await pass(bench, 30_000);
    expect(open(bench)).toEqual(["p-m1"]);
    await grow(bench);
    expect(open(bench)).toEqual(["p-m1", "p-m3"]);
  },
  options,
);

scenario(
  "members stay for the linger after the last user, then go; the next user finds new ones",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await join(bench, "b");
    await ready(bench, "p-m1");
    await pass(bench, 25_000);
    await leave(bench, "a");
    await leave(bench, "b");
    expect(open(bench)).toEqual(["p-m1"]);
    await pass(bench, 9_000);
    expect(open(bench)).toEqual(["p-m1"]);
    await pass(bench, 2_000);
    expect(open(bench)).toEqual([]);
    expect(bench.state.timers.size, "an empty pool waits for nothing but a user").toBe(0);
    await join(bench, "c", { min: 2 });
    expect(open(bench)).toEqual(["p-m2", "p-m3"]);
  },
  options,
);

scenario(
  "a user that comes back within the linger keeps what is there",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await ready(bench, "p-m1");
    await leave(bench, "a");
    await pass(bench, 5_000);
    await join(bench, "b");
    await pass(bench, 30_000);
    expect(open(bench)).toEqual(["p-m1"]);
  },
  options,
);

scenario(
  "POOL-1: a join that comes after its leave, or twice, counts as what it is",
  app,
  async (bench) => {
    await begin(bench);
    await leave(bench, "late");
    await join(bench, "late");
    expect(open(bench)).toEqual([]);
    await join(bench, "a");
    await join(bench, "a");
    await leave(bench, "a");
    await leave(bench, "a");
    await pass(bench, 11_000);
    expect(open(bench), "one on its way goes when it is there").toEqual(["p-m1"]);
    await ready(bench, "p-m1");
    expect(open(bench)).toEqual([]);
  },
  options,
);

scenario(
  "POOL-2: a minimum of none still means one while it is used",
  app,
  async (bench) => {
    await begin(bench, { min: 0 });
    await join(bench, "a", { min: 0 });
    expect(open(bench)).toEqual(["p-m1"]);
  },
  options,
);

scenario(
  "a member that cannot be had is asked for again, less and less often, and people are told",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    const gaps: number[] = [];
    for (let i = 1; i <= 4; i++) {
      for (let attempt = 1; attempt <= 5; attempt++) await bench.turn(initFailed(`p-m${i}`, attempt));
      expect(open(bench)).toEqual([]);
      const failedAt = bench.now;
      while (open(bench).length === 0) await pass(bench, 200);
      gaps.push(bench.now - failedAt);
    }
    for (const [i, gap] of gaps.entries()) expect(Math.abs(gap - 1000 * 2 ** i)).toBeLessThan(500);
    expect(bench.state.customStatus).toMatchObject({
      json: { users: 1, error: expect.stringContaining("no memory") },
    });
  },
  options,
);

scenario(
  "it goes on over many signals, with its users and members",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await ready(bench, "p-m1");
    const many = Array.from({ length: 62 }, () => signal("pool", { kind: "grow", waitedMs: 500 }));
    for (let i = 0; i < 5; i++) await bench.turn(...many);
    expect(bench.state.execution).toBe(2);
    expect(open(bench)).toEqual(["p-m1", "p-m2"]);
    await leave(bench, "a");
    await pass(bench, 11_000);
    await ready(bench, "p-m2");
    expect(open(bench)).toEqual([]);
  },
  { ...options, unchecked: true },
);

scenario(
  "it does not follow a cancel: a pool goes when its users go",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await bench.turn(cancel("by mistake"));
    await join(bench, "b");
    await ready(bench, "p-m1");
    expect(bench.state.status).toBe("running");
    expect(open(bench)).toEqual(["p-m1"]);
  },
  options,
);

scenario(
  "words it does not know change nothing",
  app,
  async (bench) => {
    await begin(bench);
    for (const word of [null, "grow", { kind: "burst" }, { kind: "join" }])
      await bench.turn(signal("pool", word));
    await join(bench, "a");
    expect(open(bench)).toEqual(["p-m1"]);
  },
  options,
);
