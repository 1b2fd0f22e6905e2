/**
 * Calls user code, which may throw anything, return anything or never return, and gives exactly one outcome.
 */
import { beatTtlMs } from "../../../../shared/leases/index.ts";
import type { Clock, Timer } from "../../../../shared/runtime/index.ts";
import type { Aborting } from "../../lazy-abort.ts";

export type Settled =
  | { kind: "returned"; value: unknown }
  | { kind: "threw"; error: unknown }
  | { kind: "start_to_close" }
  | { kind: "heartbeat" }
  | { kind: "schedule_to_close" }
  | { kind: "interrupted" };

export interface Limits {
  startToCloseMs?: number | undefined;
  heartbeatMs?: number | undefined;
  scheduleToCloseMs?: number | undefined;
}

/**
 * The engine enforces schedule-to-close, and its cancel notice ends the code; but a notice may be lost.
 * Counted from the start of the run, the time is certainly over after this much more, whatever the clocks
 * say.
 */
const scheduleToCloseGraceMs = 1000;

export interface UserCall {
  readonly settled: Promise<Settled>;
  /** Resolves when the code itself is over, which may be long after the run was given up. Never rejects. */
  readonly finished: Promise<unknown>;
  /** Call when the code reports that it is alive. */
  beat(): void;
}

export function callUserCode(clock: Clock, signal: Aborting, limits: Limits, run: () => unknown): UserCall {
  const { startToCloseMs, heartbeatMs, scheduleToCloseMs } = limits;
  let beatAt = clock.monotonic();
  let closeTimer: Timer | undefined;
  let beatTimer: Timer | undefined;
  let overdueTimer: Timer | undefined;
  let resolve: (outcome: Settled) => void = () => undefined;
  const settled = new Promise<Settled>((done) => {
    resolve = done;
  });
  const onAbort = () => settle({ kind: "interrupted" });
  const settle = (outcome: Settled) => {
    closeTimer?.cancel();
    beatTimer?.cancel();
    overdueTimer?.cancel();
    signal.removeEventListener("abort", onAbort);
    resolve(outcome);
  };
  // The timer checks the remaining time instead of being set anew with every beat: beats may come in a tight
  // loop.
  const watchBeats = (limitMs: number, waitMs: number) => {
    beatTimer = clock.after(waitMs, () => {
      const leftMs = limitMs - (clock.monotonic() - beatAt);
      if (leftMs > 0) watchBeats(limitMs, leftMs);
      else settle({ kind: "heartbeat" });
    });
  };
  const call = (finished: Promise<unknown>): UserCall => ({
    settled,
    finished,
    beat: () => {
      const now = clock.monotonic();
      // This process was paused or blocked, and the code woke before the timer: the run already counts as
      // silent.
      if (heartbeatMs !== undefined && now - beatAt > beatTtlMs(heartbeatMs)) settle({ kind: "heartbeat" });
      else beatAt = now;
    },
  });

  if (signal.aborted) {
    onAbort();
    return call(Promise.resolve());
  }
  signal.addEventListener("abort", onAbort, { once: true });
  if (startToCloseMs !== undefined) {
    closeTimer = clock.after(startToCloseMs, () => settle({ kind: "start_to_close" }));
  }
  if (scheduleToCloseMs !== undefined) {
    const waitMs = scheduleToCloseMs + scheduleToCloseGraceMs;
    overdueTimer = clock.after(waitMs, () => settle({ kind: "schedule_to_close" }));
  }
  if (heartbeatMs !== undefined) watchBeats(heartbeatMs, heartbeatMs);
  try {
    // Through a real promise: a user-made thenable may answer twice, or throw when it is called.
    const finished = Promise.resolve(run()).then(
      (value) => settle({ kind: "returned", value }),
      (error: unknown) => settle({ kind: "threw", error }),
    );
    return call(finished);
  } catch (error) {
    settle({ kind: "threw", error });
    return call(Promise.resolve());
  }
}
