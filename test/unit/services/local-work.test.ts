/** Local activities that run ahead of the commit which asks for them (LOCAL-4). */
import { expect, test } from "vitest";
import type { ActivityReport, Name } from "../../../schemas/index.ts";
import { LocalWork } from "../../../services/orchestrator/local/local-work.ts";
import { Payloads } from "../../../shared/bus/index.ts";
import { collectApp, defineActivity } from "../../../shared/definitions/index.ts";
import { type InstanceState, initialState, type OpenTask } from "../../../shared/replay/index.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

function open() {
  const clock = new SimulatedClock();
  const runs: { input: string; signal: AbortSignal; end(): void }[] = [];
  const held = defineActivity("held", {
    run: (ctx, input: string) =>
      new Promise<string>((resolve) => runs.push({ input, signal: ctx.signal, end: () => resolve(input) })),
  });
  const random = seededRandom(1);
  const bus = new MemoryBroker({ clock }).connect();
  const reports: ActivityReport[] = [];
  const runtime = { clock, random, announce: () => undefined };
  const deps = {
    id: "orchestrator-1",
    app: collectApp({ held }),
    payloads: new Payloads(bus.blobs),
    runtime,
  };
  return { clock, runs, reports, work: new LocalWork(deps, (report) => reports.push(report)) };
}

function asking(input: string): InstanceState {
  const state: InstanceState = { ...initialState("a"), execution: 1, status: "running" };
  const task: OpenTask = {
    ...{ id: 2, name: "held" as Name, input: { json: input }, target: { kind: "local" } },
    retry: { maxAttempts: 1, initialDelayMs: 0, maxDelayMs: 0, factor: 1, nonRetryable: [] },
    ...{ timeouts: {}, byEngine: false, scheduledAt: 0, attempt: 1, readyAt: 0, startedAt: undefined },
    ...{ sentEpoch: undefined, sentId: undefined, interruptions: 0, strikes: 0, lastError: undefined },
  };
  state.tasks.set(2, task);
  return state;
}

const outputs = (reports: readonly ActivityReport[]) =>
  reports.map(({ result }) => (result.kind === "completed" ? result.output : result.kind));

test("what is over in time is part of the commit, and nobody is told of it again", async () => {
  const { work, runs, reports } = open();
  const state = asking("one");
  const ahead = work.ahead(state, 5);
  runs[0]?.end();
  expect(outputs(await ahead)).toEqual([{ json: "one" }]);
  state.tasks.clear();
  work.follow(state);
  expect(reports).toEqual([]);
  expect(work.idle).toBe(true);
});

test("what is over before its commit is stored waits for that", async () => {
  const { work, runs, reports, clock } = open();
  const state = asking("one");
  const ahead = work.ahead(state, 5);
  await clock.advance(5);
  expect(await ahead).toEqual([]);
  runs[0]?.end();
  await clock.advance(1);
  expect(reports).toEqual([]);
  work.follow(state);
  expect(outputs(reports)).toEqual([{ json: "one" }]);
  work.follow(state);
  expect(runs, "not begun again while its report waits").toHaveLength(1);
});

test("of a commit that was not stored nothing is left, whatever the next one asks for under the same id", async () => {
  const { work, runs, reports, clock } = open();
  const ahead = work.ahead(asking("one"), 5);
  await clock.advance(5);
  await ahead;
  work.dropAhead();
  expect(runs[0]?.signal.aborted).toBe(true);
  const next = asking("two");
  work.follow(next);
  runs[0]?.end();
  runs[1]?.end();
  await clock.advance(1);
  expect(outputs(reports)).toEqual([{ json: "two" }]);
});
