/**
 * Decides which starts of one key may run, as data: `(state, request or end, now) → state and actions`. The
 * keeper carries the actions out.
 *
 * FLOW-1 No more instances of a key run at a time than its limit, whichever client asks from wherever.
 * FLOW-2 Of every ten starts of a key that waits, one goes to the oldest, whatever its priority; the others
 *    go to the highest priority, among equals to the fairness group that was served longest ago, then to the
 *    oldest.
 * FLOW-3 A start that is not carried out is left out with a reason under its own id: nothing is lost in
 *    silence.
 */
import type { FlowKeyState, FlowOptions, OnBusy, WaitingStart } from "../../../schemas/index.ts";
import { parseDuration } from "../../../shared/runtime/index.ts";

export type FlowAction =
  | { kind: "start"; start: WaitingStart; followed: boolean }
  | { kind: "leave-out"; start: WaitingStart; code: LeftOutCode; message: string }
  | { kind: "cancel"; instanceId: string };

type LeftOutCode = "rejected" | "replaced" | "debounced" | "throttled";

/** FLOW-2 */
const oldestEvery = 10;

export function request(
  state: FlowKeyState,
  start: WaitingStart,
  flow: FlowOptions,
  now: number,
): FlowAction[] {
  const concurrency = concurrencyOf(flow);
  state.limit = concurrency?.limit;
  if (flow.rate) {
    const intervalMs = parseDuration(flow.rate.per, "rate.per") / flow.rate.limit;
    state.rate = { intervalMs, burst: flow.rate.burst ?? 1, tat: state.rate?.tat ?? 0 };
  } else state.rate = undefined;
  const onBusy = concurrency?.onBusy ?? "queue";
  if (flow.debounce) return debounce(state, { start, onBusy }, flow.debounce, now);
  if (flow.throttle) {
    const until = state.throttledUntil ?? 0;
    if (now < until)
      return [leftOut(start, "throttled", `an earlier start of this key is less than its period ago`)];
    state.throttledUntil = now + parseDuration(flow.throttle.period, "throttle.period");
  }
  return enqueue(state, start, onBusy);
}

function concurrencyOf({
  concurrency,
  singleton,
}: FlowOptions): { limit: number; onBusy: OnBusy } | undefined {
  if (singleton) return { limit: 1, onBusy: "reject" };
  if (concurrency === undefined) return undefined;
  if (typeof concurrency === "number") return { limit: concurrency, onBusy: "queue" };
  return { limit: concurrency.limit, onBusy: concurrency.onBusy ?? "queue" };
}

function enqueue(state: FlowKeyState, start: WaitingStart, onBusy: OnBusy): FlowAction[] {
  const busy = state.limit !== undefined && state.running.length + state.waiting.length >= state.limit;
  if (!busy || onBusy === "queue") {
    state.waiting.push(start);
    return [];
  }
  switch (onBusy) {
    case "reject":
      return [
        leftOut(
          start,
          "rejected",
          `${state.running.length} instances of this key run already; its limit is ${state.limit}`,
        ),
      ];
    case "replace":
    case "cancel-running": {
      const replaced = state.waiting.map((one) =>
        leftOut(one, "replaced", `the later start ${start.instanceId} replaced it`),
      );
      state.waiting = [start];
      const [oldest] = state.running;
      return onBusy === "cancel-running" && oldest !== undefined && state.running.length >= (state.limit ?? 0)
        ? [...replaced, { kind: "cancel", instanceId: oldest }]
        : replaced;
    }
  }
}

function debounce(
  state: FlowKeyState,
  { start, onBusy }: { start: WaitingStart; onBusy: OnBusy },
  { period, maxWait }: NonNullable<FlowOptions["debounce"]>,
  now: number,
): FlowAction[] {
  const before = state.debounced;
  if (before && before.start.number > start.number)
    return [leftOut(start, "debounced", `the later start ${before.start.instanceId} replaced it`)];
  const latestAt =
    before?.latestAt ??
    (maxWait === undefined ? Number.MAX_SAFE_INTEGER : now + parseDuration(maxWait, "debounce.maxWait"));
  const dueAt = Math.min(now + parseDuration(period, "debounce.period"), latestAt);
  state.debounced = { start, dueAt, latestAt, onBusy };
  return before
    ? [leftOut(before.start, "debounced", `the later start ${start.instanceId} replaced it`)]
    : [];
}

/** Removes a run that has ended, or a start that was ended before it could begin. */
export function ended(state: FlowKeyState, instanceId: string): void {
  state.running = state.running.filter((one) => one !== instanceId);
  state.waiting = state.waiting.filter((one) => one.instanceId !== instanceId);
  if (state.debounced?.start.instanceId === instanceId) state.debounced = undefined;
}

/** Starts every waiting start that may start now. */
export function advance(state: FlowKeyState, now: number): FlowAction[] {
  const actions: FlowAction[] = [];
  if (state.debounced && state.debounced.dueAt <= now) {
    const { start, onBusy = "queue" } = state.debounced;
    state.debounced = undefined;
    actions.push(...enqueue(state, start, onBusy));
  }
  while (state.waiting.length > 0 && hasRoom(state) && (startableAt(state) ?? 0) <= now) {
    const start = popNext(state);
    if (!start) break;
    if (state.rate) {
      const { intervalMs, tat } = state.rate;
      state.rate.tat = Math.max(now, tat) + intervalMs;
    }
    const followed = state.limit !== undefined;
    if (followed) state.running.push(start.instanceId);
    actions.push({ kind: "start", start, followed });
  }
  return actions;
}

const hasRoom = ({ limit, running }: FlowKeyState): boolean => limit === undefined || running.length < limit;

/** The earliest time at which the rate limit alone permits the next start. */
function startableAt({ rate }: FlowKeyState): number | undefined {
  return rate && rate.tat - (rate.burst - 1) * rate.intervalMs;
}

/** Returns the next time at which `advance` may have something to do, if no message comes before. */
export function nextInstant(state: FlowKeyState): number | undefined {
  const times: number[] = [];
  if (state.debounced) times.push(state.debounced.dueAt);
  const startable = startableAt(state);
  if (state.waiting.length > 0 && hasRoom(state) && startable !== undefined) times.push(startable);
  return times.length === 0 ? undefined : Math.min(...times);
}

/**
 * Returns true if the keeper would only record the message: it can wait for the next message on which the
 * keeper acts, and share its commit. `flow`: the options of the start; undefined for the end of a run.
 */
export function mayWait(state: FlowKeyState | undefined, flow: FlowOptions | undefined): boolean {
  if (!flow) return !state || state.waiting.length === 0;
  if (!state || flow.debounce || flow.throttle) return false;
  const concurrency = concurrencyOf(flow);
  return concurrency?.onBusy === "queue" && concurrency.limit === state.limit && !hasRoom(state);
}

/** True if the key has nothing to remember and can be forgotten. */
export function isIdle(state: FlowKeyState, now: number): boolean {
  return (
    state.running.length === 0 &&
    state.waiting.length === 0 &&
    !state.debounced &&
    (state.throttledUntil ?? 0) <= now &&
    (state.rate?.tat ?? 0) <= now
  );
}

/** FLOW-2 */
function popNext(state: FlowKeyState): WaitingStart | undefined {
  const oldest = state.waiting.reduce((a, b) => (b.number < a.number ? b : a));
  const oldestsTurn = state.sinceOldest >= oldestEvery - 1;
  const best = oldestsTurn ? oldest : state.waiting.reduce((a, b) => (comesBefore(state, b, a) ? b : a));
  state.sinceOldest = best === oldest ? 0 : state.sinceOldest + 1;
  state.waiting = state.waiting.filter((one) => one !== best);
  const groups = new Set(state.waiting.map(({ fairness }) => fairness));
  const served = Object.entries(state.served).filter(([group]) => groups.has(group));
  state.served = {
    ...Object.fromEntries(served),
    [best.fairness]: Math.max(0, ...Object.values(state.served)) + 1,
  };
  return best;
}

function comesBefore(state: FlowKeyState, a: WaitingStart, b: WaitingStart): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority;
  const turns = (state.served[a.fairness] ?? 0) - (state.served[b.fairness] ?? 0);
  return turns !== 0 ? turns < 0 : a.number < b.number;
}

const leftOut = (start: WaitingStart, code: LeftOutCode, message: string): FlowAction => ({
  kind: "leave-out",
  start,
  code,
  message: `${start.orchestration} was not started: ${message}`,
});
