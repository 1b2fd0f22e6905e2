import { expect } from "vitest";
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  type PoolOptions,
} from "../../../../shared/definitions/index.ts";
import { type Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import { cancel, completed, signal, start, terminate } from "../../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const model = defineSession("model", {
  config: z.object({ size: z.number() }).optional(),
  init: () => ({}),
  calls: { ask: call({ run: (_state, n: number) => n }) },
});
const other = defineSession("other", {
  init: () => ({}),
  calls: { ask: call({ run: (_state, n: number) => n }) },
});

const asks = defineOrchestration("asks", {
  async run(ctx, options: PoolOptions<{ size: number }> = {}) {
    await using pool = await ctx.usePool(model, options);
    const [a, b] = await Promise.all([pool.ask(1), pool.ask(2)]);
    return { id: pool.id, state: pool.info.state, sum: Number(a) + Number(b) };
  },
});
const twice = defineOrchestration("twice", {
  async run(ctx) {
    const first = await ctx.usePool(model);
    const second = await ctx.usePool(model);
    const open = first.ask(1).catch((error) => error.code);
    await ctx.waitForSignal("close-first");
    await first.close();
    await first.close();
    const after = await first.ask(3).catch((error) => error.code);
    const still = await second.ask(2);
    await second.close();
    const again = await ctx.usePool(model);
    const last = await again.ask(4);
    return { same: first.id === second.id, open: await open, after, still, last };
  },
});
const generations = defineOrchestration("generations", {
  async run(ctx, left: number) {
    const pool = await ctx.usePool(model);
    await pool.ask(left);
    if (left > 0) ctx.continueAsNew(left - 1);
    return "done";
  },
});
const odd = defineOrchestration("odd", {
  async run(ctx, options: PoolOptions<never>) {
    return ctx.usePool(model, options).then(
      () => "joined",
      (error) => `${error.code}: ${error.message}`,
    );
  },
});
const misused = defineOrchestration("misused", {
  async run(ctx) {
    const pool = await ctx.usePool(model);
    const run = await pool.run(work, null).catch((error) => error.code);
    let token = "";
    try {
      token = pool.token();
    } catch (error) {
      token = (error as { code: string }).code;
    }
    return [run, token];
  },
});
const apart = defineOrchestration("apart", {
  async run(ctx) {
    const options = { config: { size: 1 } };
    const pools = [
      await ctx.usePool(model),
      await ctx.usePool(model, options),
      await ctx.usePool(model, { ...options, id: "mine" }),
      await ctx.usePool(model, { id: "mine" }),
      await ctx.usePool(other, { id: "mine" }),
    ];
    // There is no lender here: the pool is joined all the same.
    ctx.usePool(model, { sharing: "exclusive" });
    return pools.map((pool) => pool.id);
  },
});
const app = { work, model, other, asks, twice, generations, odd, misused, apart };

const joins = (bench: Bench) => bench.effects.filter((effect) => effect.kind === "join-pool");
const leaves = (bench: Bench) => bench.effects.filter((effect) => effect.kind === "leave-pool");
const answerAll = (bench: Bench) =>
  bench.turn(
    ...[...bench.state.tasks.keys()].map((id) => completed(id, id, { execution: bench.state.execution })),
  );

scenario("calls are tasks on the pool's queue; joined at first, left at the end", app, async (bench) => {
  await bench.turn(start("asks", { config: { size: 3 }, min: 2, max: 5, linger: "5s" }));
  const { poolId, pool } = bench.last("pool.joined");
  expect(pool).toEqual({ type: "model", config: { json: { size: 3 } }, min: 2, max: 5, lingerMs: 5000 });
  expect(joins(bench)).toEqual([{ kind: "join-pool", poolId, pool, id: bench.last("pool.joined").id }]);
  for (const task of bench.state.tasks.values()) {
    expect(task).toMatchObject({ name: "ask", target: { kind: "queue", queue: `pool-${poolId}` } });
    expect(task.retry.maxAttempts).toBe(3);
  }
  await answerAll(bench);
  expect(bench.output).toMatchObject({ id: poolId, state: "pool", sum: 7 });
  expect(leaves(bench)).toEqual([{ kind: "leave-pool", poolId, id: bench.last("pool.joined").id }]);
  expect(bench.kinds.slice(-2)).toEqual(["pool.left", "instance.completed"]);
});

scenario("two handles are one use; each ends its own calls, the last one leaves", app, async (bench) => {
  await bench.turn(start("twice"));
  expect(joins(bench)).toHaveLength(1);
  const { events } = await bench.turn(signal("close-first"));
  expect(events.map((event) => event.kind)).toEqual([
    "signal.received",
    "activity.cancelled",
    "activity.scheduled",
  ]);
  expect(leaves(bench)).toEqual([]);
  await answerAll(bench);
  // Left and joined again in one turn: two uses, distinguished by their ids.
  expect(joins(bench)).toHaveLength(2);
  expect(leaves(bench)).toHaveLength(1);
  expect(leaves(bench)[0]?.id).toBe(joins(bench)[0]?.id);
  await answerAll(bench);
  expect(bench.output).toMatchObject({ same: true, open: "cancelled", after: "session_unusable" });
});

scenario("continue-as-new leaves the pool and joins it again", app, async (bench) => {
  await bench.turn(start("generations", 2));
  for (let turn = 0; turn < 3; turn++) await answerAll(bench);
  expect(bench.output).toBe("done");
  const uses = bench.published.flatMap(({ execution, effects }) =>
    effects.flatMap((effect) =>
      effect.kind === "join-pool" || effect.kind === "leave-pool" ? [`${effect.kind} ${execution}`] : [],
    ),
  );
  expect(uses).toEqual([1, 2, 3].flatMap((n) => [`join-pool ${n}`, `leave-pool ${n}`]));
});

for (const end of [cancel("enough"), terminate("enough")]) {
  scenario(`an instance that is ended by ${end.kind} leaves its pools`, app, async (bench) => {
    await bench.turn(start("asks"));
    await bench.turn(end);
    expect(leaves(bench)).toHaveLength(1);
    expect(bench.effects.filter((effect) => effect.kind === "cancel-task")).toHaveLength(2);
  });
}

scenario("what cannot be a pool is refused by name, and nothing is joined", app, async (bench) => {
  const refused = async (options: unknown, message: RegExp) => {
    const one = new (bench.constructor as typeof Bench)(app, bench.mode);
    await one.turn(start("odd", options));
    expect(one.output).toMatch(message);
    expect(joins(one)).toEqual([]);
  };
  await refused({ min: 3, max: 2 }, /invalid_option.*min \(3\) and max \(2\)/);
  await refused({ max: 0 }, /invalid_option/);
  await refused({ min: 1.5 }, /invalid_option/);
  await refused({ linger: "soon" }, /linger/);
  await refused({ id: "not an id" }, /invalid_id.*pool id/);
  await refused({ id: "x".repeat(81) }, /at most 80/);
  await refused({ config: { size: "big" } }, /invalid_config/);
  await refused({ config: { size: 1, more: "x".repeat(70_000) } }, /invalid_config|bytes/);
});

scenario("a pool is not one resource, and runs only the calls of its type", app, async (bench) => {
  await bench.turn(start("misused"));
  expect(bench.output).toEqual(["session_unusable", "session_unusable"]);
});

scenario("type, config and name keep pools apart", app, async (bench) => {
  await bench.turn(start("apart"));
  const ids = bench.output as string[];
  expect(new Set(ids).size).toBe(5);
  for (const id of ids) expect(id).toMatch(/^(model|mine)-[0-9a-f]{12}$/);
  expect(ids, "what is lent is not shared").not.toContain(bench.last("pool.joined").poolId);
});
