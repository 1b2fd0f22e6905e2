/**
 * A task that waits for its next attempt does not run again when its result is no longer needed. In virtual
 * time.
 */
import { beforeEach, describe, expect, test } from "vitest";
import {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { type BusFaults, noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

const minute = 60_000;
const retry = { initialDelay: "5m", maxDelay: "5m", maxAttempts: 3 } as const;

/** The workers that ran the task, with the attempt. */
const runs: string[] = [];
const failing = defineActivity("failing", {
  run: (ctx, who: string) => {
    runs.push(`${who} ${ctx.attempt}`);
    throw new Error("not yet");
  },
});
const desk = defineSession("desk", {
  idleTimeout: "1h",
  init: () => ({}),
  calls: {
    ask: call({
      run: (_state, who: string) => {
        runs.push(who);
        throw new Error("not yet");
      },
    }),
  },
});
const alone = defineOrchestration("alone", { run: (ctx) => ctx.run(failing, "alone", { retry }) });
const beside = defineOrchestration("beside", {
  async run(ctx) {
    const dropped = ctx.scope((inner) => inner.run(failing, "dropped", { retry }));
    const kept = ctx.run(failing, "kept", { retry });
    await ctx.sleep("1m");
    dropped.cancel();
    await dropped.result.catch(() => undefined);
    return await kept.catch((error: { message: string }) => error.message);
  },
});
const raced = defineOrchestration("raced", {
  run: (ctx) => Promise.race([ctx.run(failing, "raced", { retry }), ctx.sleep("1m")]),
});
const again = defineOrchestration("again", {
  async run(ctx, life: number) {
    if (life > 1) return "second life";
    void ctx.run(failing, "first life", { retry }).catch(() => undefined);
    await ctx.sleep("1m");
    return ctx.continueAsNew(life + 1);
  },
});
const calling = defineOrchestration("calling", {
  async run(ctx) {
    const session = await ctx.openSession(desk, { id: "desk" });
    await Promise.race([session.ask("call", { retry }), ctx.sleep("1m")]);
    await ctx.sleep("1h");
  },
});
const app = collectApp({ failing, desk, alone, beside, raced, again, calling });

const open = async (alwaysReplay = false) => {
  // The server's schedules come behind the timers of the process, as they do.
  const faults = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [200, 250] } satisfies BusFaults;
  const world = new World({ seed: 1, app, faults, alwaysReplay });
  await world.prepare();
  return world;
};
const waiting = (world: World) => {
  const { activitiesStream, sessionsStream } = world.names;
  return [activitiesStream, sessionsStream].map((name) => world.broker.streams.get(name)?.size);
};

beforeEach(() => {
  runs.length = 0;
});

describe.each([false, true])("always replayed: %s", (alwaysReplay) => {
  test.each(["cancel", "terminate"] as const)("after %s of its instance", async (verb) => {
    const world = await open(alwaysReplay);
    await world.orchestrator();
    await world.worker();
    await world.start("alone", null, "a");
    await world.clock.advance(3000);
    expect(waiting(world)).toEqual([1, 0]);
    await world.run(world.client[verb]("a"));
    await world.clock.advance(1000);
    expect(waiting(world)).toEqual([0, 0]);
    await world.clock.advance(20 * minute);
    expect(runs).toEqual(["alone 1"]);
  });

  test("after its scope was cancelled; what runs beside it is tried as often as ever", async () => {
    const world = await open(alwaysReplay);
    await world.orchestrator();
    await world.worker();
    const handle = await world.start("beside", null, "a");
    expect(await world.run(handle.result(), 20 * minute)).toBe("not yet");
    expect(runs.sort()).toEqual(["dropped 1", "kept 1", "kept 2", "kept 3"]);
  });

  test("after its execution was continued as new", async () => {
    const world = await open(alwaysReplay);
    await world.orchestrator();
    await world.worker();
    const handle = await world.start("again", 1, "a");
    expect(await world.run(handle.result(), 20 * minute)).toBe("second life");
    await world.clock.advance(20 * minute);
    expect(runs).toEqual(["first life 1"]);
  });

  test("where it is a call: its session lives on without it", async () => {
    const world = await open(alwaysReplay);
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    await world.start("calling", null, "a");
    await world.clock.advance(30_000);
    expect(waiting(world)).toEqual([0, 1]);
    await world.clock.advance(20 * minute);
    expect(runs).toEqual(["call"]);
    expect(waiting(world)).toEqual([0, 0]);
  });
});

test("a first attempt that no worker has taken yet leaves the queue when it has lost its race", async () => {
  const world = await open();
  await world.orchestrator();
  const handle = await world.start("raced", null, "a");
  await world.clock.advance(3000);
  expect(waiting(world)).toEqual([1, 0]);
  await world.run(handle.result(), 2 * minute);
  expect(waiting(world)).toEqual([0, 0]);
  await world.clock.advance(5 * minute);
  await world.worker();
  await world.clock.advance(minute);
  expect(runs).toEqual([]);
});

test.each(["turn.after_append", "effects.half_published", "turn.after_effects"] as const)(
  "when the owner dies at %s of the turn that ends it, the next one withdraws it",
  async (point) => {
    const world = await open();
    // Start, failed attempt, terminate.
    const owner = await world.orchestrator({ point, count: 3 });
    await world.worker();
    await world.start("alone", null, "a");
    await world.clock.advance(3000);
    await world.run(world.client.terminate("a"));
    await world.clock.advance(1000);
    expect(owner.bus.connected()).toBe(false);
    await world.orchestrator();
    await world.clock.advance(minute);
    expect(waiting(world)).toEqual([0, 0]);
    await world.clock.advance(20 * minute);
    expect(runs).toEqual(["alone 1"]);
  },
);

/** No message is behind these turns: the timer of the process woke them, and only its schedule is left to repair them. */
describe("a turn that no message led to", () => {
  type DieAt = Parameters<World["orchestrator"]>[0];
  const killed = async (dieAt: DieAt, prepare: (owner: Member, world: World) => void) => {
    const world = await open();
    const owner = await world.orchestrator(dieAt);
    prepare(owner, world);
    await world.worker();
    await world.start("raced", null, "a");
    await world.clock.advance(2 * minute);
    expect(owner.bus.connected()).toBe(false);
    await world.orchestrator();
    await world.clock.advance(20 * minute);
    expect(waiting(world)).toEqual([0, 0]);
    expect(runs).toEqual(["raced 1"]);
  };

  test.each(["turn.after_append", "effects.half_published"] as const)("dies at %s", async (point) => {
    // Start, failed attempt, timer.
    await killed({ point, count: 3 }, () => undefined);
  });

  test("dies when all the rest is out and the attempt is not withdrawn yet", async () => {
    await killed(undefined, ({ bus }, { clock }) => {
      const purge = bus.purge.bind(bus);
      bus.purge = async (stream, filter, throughSeq) => {
        if (filter.startsWith("retries.")) {
          await sleep(clock, 20);
          bus.kill();
        }
        return purge(stream, filter, throughSeq);
      };
    });
  });
});
