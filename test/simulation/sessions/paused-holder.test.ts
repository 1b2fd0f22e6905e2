/**
 * A worker that is paused for longer than its lease: when it goes on, it reports nothing under the expired
 * lease (S7).
 */
import { expect, test } from "vitest";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { sessionTtlMs, World } from "../../../shared/testing/world/world.ts";

let world: World;
let runs = 0;
const desk = defineSession("desk", {
  init: () => ({}),
  calls: {
    write: call({
      run: async () => {
        // The first one ends when its lease is over, before any timer of its worker can say so.
        await sleep(world.clock, runs++ === 0 ? sessionTtlMs + 500 : 10);
        return runs;
      },
    }),
  },
});
const app = collectApp({
  desk,
  writes: defineOrchestration("writes", {
    run: async (ctx) => {
      await using mine = await ctx.openSession(desk, { onLost: "reclaim", leaseTtl: "3s" });
      return await mine.write(null);
    },
  }),
});

test("S7: a holder asks its lease before it reports: asleep for longer, it tells nothing of what ended", async () => {
  runs = 0;
  world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 2] } });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  const holder = await world.worker();
  const handle = await world.start("writes", null, "a");
  await world.clock.runUntil(() => runs === 1);
  const told: string[] = [];
  const { publish, request } = holder.bus;
  holder.bus.publish = (subject, body, options) => {
    told.push(subject);
    return publish.call(holder.bus, subject, body, options);
  };
  holder.bus.request = (subject, body, options) => {
    told.push(subject);
    return request.call(holder.bus, subject, body, options);
  };
  await world.clock.advance(50); // it has said that it took the call
  holder.pause("let through");
  await world.worker();
  const first = runs;
  await world.run(handle.result(), 120_000);
  expect(runs, "another one wrote").toBeGreaterThan(first);
  await world.clock.advance(sessionTtlMs);
  expect(told.filter((subject) => /\.a\.(activity|report|session)$/.test(subject))).toEqual([]);
  checkHistory((await world.history("a")) ?? []);
});
