/** Calls from outside any instance, as their holder keeps them (CALLER-1, CALLER-2). */
import { beforeEach, expect, test } from "vitest";
import { callerHeader, laneOwnerHeader, SessionCall, type SessionWork } from "../../../schemas/index.ts";
import type { ReplyPath } from "../../../services/worker/lane/index.ts";
import { CallerCalls } from "../../../services/worker/sessions/calls/caller-calls.ts";
import type { SessionDeps } from "../../../services/worker/sessions/session-deps.ts";
import { subjects } from "../../../shared/bus/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

let clock: SimulatedClock;
let connected: boolean;
let sent: { subject: string; body: Record<string, unknown> }[];
let work: SessionWork[];
let ways: ReplyPath[];
let takes: boolean;
let calls: CallerCalls;

const text = new TextDecoder();
const call = SessionCall.parse({
  v: 1,
  kind: "call",
  epoch: 7,
  call: true,
  task: {
    v: 1,
    instanceId: "caller-a",
    execution: 1,
    of: 3,
    attempt: 1,
    name: "add",
    input: { json: 1 },
    scheduledAt: 0,
    timeouts: {},
    reportStart: false,
  },
});
const report = {
  v: 1 as const,
  execution: 1,
  of: call.task.of,
  attempt: 1,
  workerId: "w" as never,
  epoch: call.epoch,
  result: { kind: "completed" as const, output: { json: 5 } },
};

function ask(): { answers: Record<string, unknown>[] } {
  const answers: Record<string, unknown>[] = [];
  const headers = { [laneOwnerHeader]: "caller-a", [callerHeader]: "1" };
  const reply = (body: Uint8Array) => void answers.push(JSON.parse(text.decode(body)));
  calls.receive({ subject: "s", headers, body: new Uint8Array(), reply }, "session", call);
  return { answers };
}

beforeEach(() => {
  clock = new SimulatedClock();
  connected = true;
  sent = [];
  work = [];
  ways = [];
  takes = true;
  const deps = {
    bus: {
      connected: () => connected,
      send: (subject: string, body: Uint8Array) =>
        void sent.push({ subject, body: JSON.parse(text.decode(body)) }),
    },
    names: subjects(),
    identity: { workerId: "w" },
    runtime: { clock },
  } as unknown as SessionDeps;
  calls = new CallerCalls(deps, (_sessionId, one, way) => {
    work.push(one);
    if (way) ways.push(way);
    return takes;
  });
});

test("a call that is over at once is its own answer, and the same answer again", async () => {
  const first = ask();
  await ways[0]?.report("caller-a", report);
  expect(first.answers).toMatchObject([{ kind: "done", report: { result: { output: { json: 5 } } } }]);
  expect(ask().answers).toEqual(first.answers);
  expect(work).toHaveLength(1);
});

test("a call that takes longer is said to be taken, runs once, and is told when it is over", async () => {
  const first = ask();
  await clock.advance(10);
  expect(first.answers).toMatchObject([{ kind: "taken" }]);
  expect(ask().answers).toMatchObject([{ kind: "taken" }]);
  await ways[0]?.report("caller-a", report);
  expect(sent).toMatchObject([{ subject: "lanes.owners.caller-a.caller-a.report" }]);
  expect(ask().answers).toMatchObject([{ kind: "done" }]);
  expect(work).toHaveLength(1);
});

test("what is refused is not remembered", () => {
  takes = false;
  expect(ask().answers).toMatchObject([{ kind: "refused" }]);
  takes = true;
  ask();
  expect(work).toHaveLength(2);
});

test("a call that will not be finished is given back, with whether it began", async () => {
  ask();
  await clock.advance(10);
  ways[0]?.drop?.(false);
  expect(sent).toMatchObject([
    { subject: "lanes.owners.caller-a.caller-a.returned", body: { untouched: false } },
  ]);
  ask();
  ways[1]?.drop?.(true);
  expect(work).toHaveLength(2);
});

test("a caller that asks keeps its call, one that does not for 5 s has it cancelled", async () => {
  ask();
  for (let i = 0; i < 20; i++) {
    await clock.advance(1000);
    ask();
  }
  expect(work.map(({ kind }) => kind)).toEqual(["call"]);
  await clock.advance(6500);
  expect(work.map(({ kind }) => kind)).toEqual(["call", "cancel"]);
});

test("while the server is away nobody can ask, and nothing is cancelled", async () => {
  ask();
  connected = false;
  await clock.advance(60_000);
  connected = true;
  await clock.advance(3000);
  expect(work).toHaveLength(1);
  await clock.advance(4000);
  expect(work).toHaveLength(2);
});
