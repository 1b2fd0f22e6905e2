/** What one key lets start, without a keeper: FLOW-1 to FLOW-3 of services/orchestrator/flow/flow-rules.ts. */
import { describe, expect, it } from "vitest";
import { FlowKeyState, type FlowOptions } from "../../../schemas/index.ts";
import {
  advance,
  ended,
  type FlowAction,
  isIdle,
  nextInstant,
  request,
} from "../../../services/orchestrator/flow/flow-rules.ts";

const key = () => FlowKeyState.parse({});
let number = 0;
const start = (instanceId: string, more: { priority?: number; fairness?: string } = {}) => ({
  ...{ instanceId, orchestration: "job", priority: 0, fairness: "", number: ++number },
  ...more,
});
const flow = (options: Partial<FlowOptions>): FlowOptions => ({ key: "k", ...options });
const brief = (actions: readonly FlowAction[]) =>
  actions.map((action) =>
    action.kind === "cancel" ? `cancel ${action.instanceId}` : `${action.kind} ${action.start.instanceId}`,
  );
const ask = (state: FlowKeyState, id: string, options: Partial<FlowOptions>, now = 0, more = {}) =>
  brief([...request(state, start(id, more), flow(options), now), ...advance(state, now)]);

describe("concurrency", () => {
  it("queue: no more at a time than the limit, the others in order", () => {
    const state = key();
    expect(["a", "b", "c", "d"].flatMap((id) => ask(state, id, { concurrency: 2 }))).toEqual([
      "start a",
      "start b",
    ]);
    ended(state, "b");
    expect(brief(advance(state, 0))).toEqual(["start c"]);
    ended(state, "b");
    expect(brief(advance(state, 0)), "an end told twice frees one place").toEqual([]);
  });

  it("reject, replace, cancel-running, singleton", () => {
    const rejecting = key();
    const reject = { concurrency: { limit: 1, onBusy: "reject" as const } };
    expect(["a", "b"].flatMap((id) => ask(rejecting, id, reject))).toEqual(["start a", "leave-out b"]);
    const replacing = key();
    const replace = { concurrency: { limit: 1, onBusy: "replace" as const } };
    expect(["a", "b", "c"].flatMap((id) => ask(replacing, id, replace))).toEqual(["start a", "leave-out b"]);
    ended(replacing, "a");
    expect(brief(advance(replacing, 0))).toEqual(["start c"]);
    const cancelling = key();
    const cancel = { concurrency: { limit: 1, onBusy: "cancel-running" as const } };
    expect(["a", "b"].flatMap((id) => ask(cancelling, id, cancel))).toEqual(["start a", "cancel a"]);
    ended(cancelling, "a");
    expect(brief(advance(cancelling, 0))).toEqual(["start b"]);
    const single = key();
    expect(["a", "b"].flatMap((id) => ask(single, id, { singleton: true }))).toEqual([
      "start a",
      "leave-out b",
    ]);
  });
});

it("rate: a token bucket; what is too early waits for its instant", () => {
  const state = key();
  const rate = { rate: { limit: 2, per: "1s", burst: 2 } };
  expect(["a", "b", "c", "d"].flatMap((id) => ask(state, id, rate, 1000))).toEqual(["start a", "start b"]);
  expect(nextInstant(state)).toBe(1500);
  expect(brief(advance(state, 1499))).toEqual([]);
  expect(brief(advance(state, 1500))).toEqual(["start c"]);
  expect(brief(advance(state, 60_000))).toEqual(["start d"]);
  expect(isIdle(state, 60_000)).toBe(false);
  expect(isIdle(state, 61_000)).toBe(true);
});

it("debounce: the latest, when silence has lasted, or after the longest wait", () => {
  const state = key();
  const debounce = { debounce: { period: 100, maxWait: 250 } };
  expect(ask(state, "a", debounce, 0)).toEqual([]);
  expect(ask(state, "b", debounce, 90)).toEqual(["leave-out a"]);
  expect(ask(state, "c", debounce, 180)).toEqual(["leave-out b"]);
  expect(nextInstant(state), "no longer than its longest wait").toBe(250);
  expect(brief(advance(state, 250))).toEqual(["start c"]);
  expect(isIdle(state, 250)).toBe(true);
});

it("debounced under a limit: what is busy when silence has lasted decides as the start says", () => {
  for (const [options, expected] of [
    [{ singleton: true }, ["leave-out b"]],
    [{ concurrency: { limit: 1, onBusy: "cancel-running" as const } }, ["cancel a"]],
    [{ concurrency: 1 }, []],
  ] as const) {
    const state = key();
    ask(state, "a", { debounce: { period: 10 }, ...options }, 0);
    expect(brief(advance(state, 10))).toEqual(["start a"]);
    ask(state, "b", { debounce: { period: 10 }, ...options }, 20);
    expect(brief(advance(state, 30))).toEqual(expected);
  }
});

it("throttle: one in a period, the others are left out", () => {
  const state = key();
  const throttle = { throttle: { period: 100 } };
  expect(ask(state, "a", throttle, 0)).toEqual(["start a"]);
  expect(ask(state, "b", throttle, 99)).toEqual(["leave-out b"]);
  expect(ask(state, "c", throttle, 100)).toEqual(["start c"]);
});

describe("who is next (FLOW-2)", () => {
  const busy = () => {
    const state = key();
    ask(state, "running", { concurrency: 1 });
    return state;
  };
  const next = (state: FlowKeyState) => {
    ended(state, state.running[0] ?? "");
    return brief(advance(state, 0))[0]?.replace("start ", "") ?? "";
  };

  it("higher priorities first, then the order they came in", () => {
    const state = busy();
    for (const [id, priority] of [
      ["low", -1],
      ["a", 0],
      ["high", 5],
      ["b", 0],
    ] as const)
      ask(state, id, { concurrency: 1 }, 0, { priority });
    expect([next(state), next(state), next(state), next(state)]).toEqual(["high", "a", "b", "low"]);
  });

  it("among equals groups take turns, however much one of them asks for", () => {
    const state = busy();
    for (let i = 0; i < 6; i++) ask(state, `greedy-${i}`, { concurrency: 1 }, 0, { fairness: "greedy" });
    for (let i = 0; i < 2; i++) ask(state, `modest-${i}`, { concurrency: 1 }, 0, { fairness: "modest" });
    const order = Array.from({ length: 8 }, () => next(state));
    expect(order.indexOf("modest-0")).toBeLessThanOrEqual(1);
    expect(order.indexOf("modest-1")).toBeLessThanOrEqual(3);
  });

  it("nobody starves: of ten starts one goes to the oldest, whatever its priority", () => {
    const state = busy();
    ask(state, "patient", { concurrency: 1 }, 0, { priority: -1000 });
    const order: string[] = [];
    for (let i = 0; i < 30 && !order.includes("patient"); i++) {
      // There is always a start of higher priority.
      ask(state, `urgent-${i}`, { concurrency: 1 }, 0, { priority: 1000 });
      order.push(next(state));
    }
    expect(order.indexOf("patient")).toBe(9);
  });
});
