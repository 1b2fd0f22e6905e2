/** Pools that the application declares, and calls of pools from outside. */
import { expect, test } from "vitest";
import { z } from "zod";
import { call, collectApp, definePool, defineSession } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const calm = { ...noFaults, latencyMs: [1, 1], scheduleDelayMs: [0, 250] } as const;

let world: World;
let inits = 0;
const model = defineSession("model", {
  config: z.object({ name: z.string() }),
  init: async (_ctx, { name }) => {
    inits++;
    return { name };
  },
  calls: {
    ask: call({ input: z.string(), run: async (state, text) => `${state.name}: ${text}` }),
    fail: call({
      run: async (): Promise<number> => {
        throw Object.assign(new Error("no"), { code: "no_good", retryable: false });
      },
    }),
  },
});
const config = { name: "m" };
const appOf = (min: number, max: number) =>
  collectApp({ model, warm: definePool(model, { config, min, max }) });

async function open(min = 2, max = 3): Promise<void> {
  inits = 0;
  world = new World({ seed: 1, app: appOf(min, max), faults: calm });
  await world.prepare();
  await world.orchestrator();
  await world.orchestrator();
  await world.watcher();
  await world.worker();
  await world.worker();
}
const run = <T>(work: Promise<T>) => world.run(work);
const active = async () => (await run(world.client.sessions.list({ type: "model", phase: "active" }))).length;
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 900; i++) {
    if (await holds()) return;
    await world.clock.advance(100);
  }
  throw new Error("it never held");
}
const pool = async () => (await run(world.client.pools.list()))[0];

test("a declared pool is warm before anybody asks, and a call from outside finds it so", async () => {
  await open();
  await until(async () => (await active()) === 2);
  const asking = world.client.pool(model, { config });
  expect(await run(asking.ask("hello"))).toBe("m: hello");
  expect(await run(world.client.pool("model", { config }).call("ask", "there"))).toBe("m: there");
  expect(inits).toBe(2);
  await until(async () => (await pool())?.members === 2);
  expect(await pool()).toMatchObject({ type: "model", min: 2, max: 3, declared: true, paused: false });
  const code = (work: Promise<unknown>) =>
    run(
      work.then(
        () => "none",
        (error) => error.code,
      ),
    );
  expect(await code(asking.fail(undefined))).toBe("no_good");
  expect(await code(asking.call("multiply"))).toBe("unknown_call");
  expect(await code(asking.call("ask", 5))).toBe("invalid_input");
  expect(await code(world.client.pool("model", { config }).call("multiply"))).toBe("unknown_call");
  expect(await code(world.client.pool("nothing").call("ask"))).toBe("unknown_session_type");
}, 60_000);

test("people resize it, pause it and resume it; a restart of the same application changes nothing", async () => {
  await open();
  await until(async () => (await active()) === 2);
  const { poolId = "" } = (await pool()) ?? {};
  await run(world.client.pools.resize(poolId, { min: 4, max: 5 }));
  await until(async () => (await active()) === 4);
  await world.orchestrator();
  await world.clock.advance(5000);
  expect(await active()).toBe(4);
  await run(world.client.pools.resize(poolId, { min: 1, max: 1 }));
  await until(async () => (await active()) === 1);
  await run(world.client.pools.pause(poolId));
  await until(async () => (await active()) === 0);
  expect(await pool()).toMatchObject({ paused: true, resized: true });
  const waiting = world.client.pool(model, { config }).ask("later");
  let answered = false;
  void waiting.then(() => {
    answered = true;
  });
  await world.clock.advance(5000);
  expect(answered).toBe(false);
  await run(world.client.pools.resume(poolId));
  expect(await run(waiting)).toBe("m: later");
  await expect(run(world.client.pools.pause("nothing"))).rejects.toMatchObject({ code: "pool_not_found" });
  await expect(run(world.client.pools.resize(poolId, { min: 3, max: 2 }))).rejects.toMatchObject({
    code: "invalid_option",
  });
}, 60_000);

test("a changed declaration holds, and one that is withdrawn lets the members go", async () => {
  await open(1, 2);
  await until(async () => (await active()) === 1);
  await world.orchestrator(undefined, { app: appOf(3, 3) });
  await until(async () => (await active()) === 3);
  const { poolId = "" } = (await pool()) ?? {};
  await run(world.client.pools.forget(poolId));
  await until(async () => (await active()) === 0);
}, 60_000);

test("a declaration with wrong bounds or config is refused where it is written", () => {
  expect(() => definePool(model, { config, min: 5, max: 2 })).toThrow(/0 <= min <= max/);
  expect(() => definePool(model, { config: { name: 5 } as never })).toThrow(/config of pool/);
});
