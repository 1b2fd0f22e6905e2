/** The lender of an exclusive pool, turn by turn: waiting borrowers, lent members, and their return. */
import { expect } from "vitest";
import { EventId, InstanceId, type PoolSignal } from "../../../schemas/index.ts";
import { poolLender } from "../../../services/orchestrator/pools/pool-lender.ts";
import { call, collectApp, defineSession } from "../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../support/worlds/instance-bench.ts";
import {
  activated,
  cancel,
  held,
  initFailed,
  lost,
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
const app = { model, lender: poolLender(collectApp({ model })) };
const options = { instanceId: "pool-p" };

interface Size {
  min?: number;
  max?: number;
  lingerMs?: number;
}
const begin = (bench: Bench, pool: Size = {}) =>
  bench.turn(
    start("holdfast-lender", {
      poolId: "p",
      pool: { type: "model", min: 1, max: 2, sharing: "exclusive", ...pool },
    }),
  );
const say = (bench: Bench, said: PoolSignal) => bench.turn(signal("pool", said));
const joining = (user: string, more: Size = {}): PoolSignal => ({
  ...{ kind: "join", user, min: 1, max: 2, lingerMs: 10_000, ...more },
  borrower: { instanceId: InstanceId.parse(user), execution: 1, of: EventId.parse(2) },
});
const join = (bench: Bench, user: string, more: Size = {}) => say(bench, joining(user, more));
const leave = (bench: Bench, user: string) => say(bench, { kind: "leave", user });
const epochOf = (id: string, attachment = 1) => Number(id.slice(3)) * 100 + attachment;
const on = (id: string, attachment = 1) => held(attachment, epochOf(id, attachment));
const ready = (bench: Bench, id: string, attachment = 1) => bench.turn(activated(id, on(id, attachment)));
const pass = (bench: Bench, ms: number) => {
  bench.advance(ms);
  return bench.turn(wake());
};
const open = (bench: Bench) =>
  [...bench.state.sessions.values()]
    .filter(({ phase }) => phase.kind !== "closed" && phase.kind !== "failed")
    .map(({ sessionId }) => sessionId);
/** The borrower of each member, as the history says, in order. */
const lendings = (bench: Bench) =>
  bench.events.flatMap((event) =>
    event.kind === "session.lent" ? [`${event.sessionId} to ${event.lending.to.instanceId}`] : [],
  );
const has = (bench: Bench) =>
  [...bench.state.sessions.values()].flatMap(({ sessionId, lending }) =>
    lending ? [`${sessionId} to ${lending.to.instanceId}`] : [],
  );

scenario(
  "the minimum is warm, each borrower gets one, in order, up to the maximum",
  app,
  async (bench) => {
    await begin(bench);
    expect(open(bench), "nobody uses it yet").toEqual([]);
    await join(bench, "a");
    expect(open(bench)).toEqual(["p-m1"]);
    expect(bench.state.sessions.get("p-m1")?.options).toMatchObject({
      ...{ idleTimeoutMs: 0, onLost: "reclaim", affinityKey: "p-m1" },
      metadata: { "holdfast-pool": "p", "holdfast-sharing": "exclusive" },
    });
    expect(lendings(bench), "LENDER-1: not before somebody holds it").toEqual([]);
    await join(bench, "b");
    await join(bench, "c");
    expect(open(bench), "as many as borrowers, not more than the maximum").toEqual(["p-m1", "p-m2"]);
    await ready(bench, "p-m2");
    expect(lendings(bench), "LENDER-2").toEqual(["p-m2 to a"]);
    await ready(bench, "p-m1");
    expect(lendings(bench)).toEqual(["p-m2 to a", "p-m1 to b"]);
    const told = bench.effects.filter((effect) => effect.kind === "lend");
    expect(told.map(({ session }) => session.lending.number)).toEqual([1, 2]);
    expect(told[0]?.session).toMatchObject({ sessionId: "p-m2", phase: { kind: "active", on: on("p-m2") } });
    expect(bench.state.customStatus).toMatchObject({ json: { users: 3, members: 2, lent: 2, waiting: 1 } });
    await leave(bench, "a");
    expect(has(bench)).toEqual(["p-m1 to b", "p-m2 to c"]);
  },
  options,
);

scenario(
  "a pre-warmed minimum is there before anybody needs it",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a", { min: 3, max: 3 });
    expect(open(bench)).toHaveLength(3);
  },
  options,
);

scenario(
  "POOL-1: joins and leaves twice, or in the wrong order, lend one member once",
  app,
  async (bench) => {
    await begin(bench);
    await leave(bench, "late");
    await join(bench, "late");
    await join(bench, "a");
    await join(bench, "a");
    await ready(bench, "p-m1");
    await join(bench, "a");
    expect(open(bench)).toEqual(["p-m1"]);
    expect(lendings(bench)).toEqual(["p-m1 to a"]);
    await leave(bench, "a");
    await leave(bench, "a");
    expect(bench.kinds.filter((kind) => kind === "session.returned")).toHaveLength(1);
    await join(bench, "a");
    expect(has(bench)).toEqual([]);
  },
  options,
);

scenario(
  "who leaves before his turn is passed over",
  app,
  async (bench) => {
    await begin(bench, { max: 1 });
    for (const user of ["a", "b", "c"]) await join(bench, user, { max: 1 });
    await ready(bench, "p-m1");
    await leave(bench, "b");
    await leave(bench, "a");
    expect(lendings(bench)).toEqual(["p-m1 to a", "p-m1 to c"]);
    const numbers = bench.events.flatMap((event) =>
      event.kind === "session.lent" ? [event.lending.number] : [],
    );
    expect(numbers, "they only grow").toEqual([1, 2]);
  },
  options,
);

scenario(
  "LENDER-3: a member lost while it is lent stays its borrower's, who is told",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await ready(bench, "p-m1");
    const { effects } = await bench.turn(lost("p-m1", on("p-m1")));
    expect(effects).toContainEqual(
      expect.objectContaining({ kind: "tell-grantees", to: ["a"], epoch: epochOf("p-m1") }),
    );
    expect(bench.phase("p-m1")).toBe("opening");
    await ready(bench, "p-m1", 2);
    expect(bench.effects.at(-1)).toBeDefined();
    expect(bench.effects).toContainEqual(
      expect.objectContaining({ kind: "tell-grantees", to: ["a"], epoch: epochOf("p-m1", 2) }),
    );
    expect(has(bench)).toEqual(["p-m1 to a"]);
    expect(lendings(bench)).toHaveLength(1);
  },
  options,
);

scenario(
  "a member lost while it was free, or given back while nobody held it, is lent when it is back",
  app,
  async (bench) => {
    await begin(bench, { max: 1 });
    await join(bench, "a", { max: 1 });
    await ready(bench, "p-m1");
    await bench.turn(lost("p-m1", on("p-m1")));
    await leave(bench, "a");
    await join(bench, "b", { max: 1 });
    expect(lendings(bench)).toEqual(["p-m1 to a"]);
    await ready(bench, "p-m1", 2);
    expect(has(bench)).toEqual(["p-m1 to b"]);
    const { session } = bench.effects.filter((effect) => effect.kind === "lend").at(-1) ?? {};
    expect(session?.phase).toMatchObject({ on: { attachment: 2 } });
  },
  options,
);

scenario(
  "a member that cannot be had any more frees its place; its borrower is told and does not block the others",
  app,
  async (bench) => {
    await begin(bench, { max: 1 });
    await join(bench, "a", { max: 1 });
    await ready(bench, "p-m1");
    await join(bench, "b", { max: 1 });
    await bench.turn(lost("p-m1", on("p-m1")));
    for (let attachment = 2; attachment <= 6; attachment++) await bench.turn(initFailed("p-m1", attachment));
    expect(bench.phase("p-m1")).toBe("failed");
    expect(bench.effects).toContainEqual(
      expect.objectContaining({
        ...{ kind: "tell-grantees", to: ["a"] },
        session: expect.objectContaining({ phase: expect.objectContaining({ kind: "failed" }) }),
      }),
    );
    await pass(bench, 30_000);
    await ready(bench, "p-m2");
    expect(has(bench)).toContain("p-m2 to b");
    await leave(bench, "a");
    expect(has(bench)).toContain("p-m2 to b");
  },
  options,
);

scenario(
  "a member that cannot be had is asked for again, and people are told",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    for (let attempt = 1; attempt <= 5; attempt++) await bench.turn(initFailed("p-m1", attempt));
    expect(open(bench)).toEqual([]);
    expect(bench.state.customStatus).toMatchObject({
      json: { users: 1, waiting: 1, error: expect.stringContaining("no memory") },
    });
    await pass(bench, 1_000);
    await ready(bench, "p-m2");
    expect(has(bench)).toEqual(["p-m2 to a"]);
  },
  options,
);

scenario(
  "shrinks to the minimum when members idle, and goes after its last borrower",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await join(bench, "b");
    await ready(bench, "p-m1");
    await ready(bench, "p-m2");
    await leave(bench, "a");
    await pass(bench, 6_000);
    expect(open(bench)).toEqual(["p-m1", "p-m2"]);
    await pass(bench, 1_000);
    expect(open(bench), "the one that is lent stays, however long its borrower thinks").toEqual(["p-m2"]);
    await pass(bench, 300_000);
    expect(has(bench)).toEqual(["p-m2 to b"]);
    await leave(bench, "b");
    await pass(bench, 9_000);
    expect(open(bench)).toEqual(["p-m2"]);
    await pass(bench, 1_000);
    expect(open(bench)).toEqual([]);
    expect(bench.state.timers.size, "an empty pool waits for nothing but a user").toBe(0);
    await join(bench, "c");
    await ready(bench, "p-m3");
    expect(has(bench)).toEqual(["p-m3 to c"]);
  },
  options,
);

scenario(
  "it goes on over many signals, with its borrowers, their order and what they have",
  app,
  async (bench) => {
    await begin(bench, { max: 1 });
    for (const user of ["a", "b", "c"]) await join(bench, user, { max: 1 });
    await ready(bench, "p-m1");
    const many = Array.from({ length: 62 }, () => signal("pool", { kind: "grow", waitedMs: 500 }));
    for (let i = 0; i < 5; i++) await bench.turn(...many);
    expect(bench.state.execution).toBe(2);
    expect(has(bench)).toEqual(["p-m1 to a"]);
    await bench.turn(lost("p-m1", on("p-m1")));
    expect(bench.effects.at(-1)).toBeDefined();
    await leave(bench, "a");
    expect(lendings(bench)).toEqual(["p-m1 to a"]);
    await ready(bench, "p-m1", 2);
    await leave(bench, "b");
    expect(lendings(bench)).toEqual(["p-m1 to a", "p-m1 to b", "p-m1 to c"]);
    expect(bench.last("session.lent").lending.number).toBe(3);
  },
  { ...options, unchecked: true },
);

scenario(
  "a free member is lent right after the lender began a new execution",
  app,
  async (bench) => {
    await begin(bench);
    await join(bench, "a");
    await ready(bench, "p-m1");
    await leave(bench, "a");
    // The join is the last word of one execution: the member is opened again, as it were, by the next.
    const many = Array.from({ length: 295 }, () => signal("pool", "noise"));
    await bench.turn(...many, signal("pool", joining("b")));
    while (bench.state.execution === 1) await bench.turn(signal("pool", "noise"));
    expect(has(bench)).toEqual(["p-m1 to b"]);
  },
  { ...options, unchecked: true },
);

scenario(
  "it does not follow a cancel, and words it does not know change nothing",
  app,
  async (bench) => {
    await begin(bench);
    await bench.turn(cancel("by mistake"));
    for (const word of [null, "lend", { kind: "join" }]) await bench.turn(signal("pool", word));
    await join(bench, "a");
    await ready(bench, "p-m1");
    expect(has(bench)).toEqual(["p-m1 to a"]);
  },
  options,
);
