/** F5: the orchestrator dies exactly where it hurts, once at each place, in a scenario that has something of everything. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FaultPoint } from "../../services/orchestrator/fault-points.ts";
import { Streams } from "../support/nats/streams.ts";
import { Stack } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/held.ts", import.meta.url));

let stack: Stack;
beforeAll(async () => {
  const env = { HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "1000" };
  stack = await Stack.start({ app, orchestrators: 0, env });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const points: [FaultPoint, number][] = [
  ["turn.before_append", 7],
  ["turn.after_append", 1],
  ["turn.after_append", 12],
  ["turn.after_effects", 9],
  ["effects.half_published", 4],
  ["effects.half_published", 11],
  ["continue.between_executions", 2],
];

test.each(points)("dies at %s, the %i. time", async (point, count) => {
  const key = `${point.replaceAll(/\W/g, "-")}-${count}`;
  const victim = await stack.run("orchestrator", { HOLDFAST_ORCHESTRATOR_FAULT: `${point}:${count}` });
  const start = (name: string, input: unknown) => stack.client.start(name, input, { id: `${key}-${name}` });
  const handles = [
    await start("mixed", { n: 4 }),
    await start("generations", { left: 4, total: 0 }),
    await start("counted", { n: 3 }),
    await start("sleepy", { ms: 50, times: 3 }),
  ];
  await stack.client.signal(`${key}-mixed`, "word", "heard");
  expect(await victim.exited, victim.log()).toBe("SIGKILL");
  const next = await stack.run("orchestrator");
  const [mixed, generations, counted, slept] = await Promise.all(
    handles.map((handle) => handle.result({ timeout: "30s" })),
  );
  expect(mixed).toEqual({ sum: 6, child: 4, word: "heard" });
  expect(generations).toEqual({ total: 4, execution: 4 });
  expect(counted).toBe(3);
  expect(slept).toBeGreaterThanOrEqual(150);
  const streams = new Streams(stack);
  await streams.checkEnded(handles.map((handle) => handle.instanceId));
  await streams.untilQuiet();
  await next.stop();
});
