/**
 * Named places where a crash must do no harm. They do nothing unless a test switches one on: then the process, or the
 * simulated one, dies exactly there.
 */
export type FaultPoint =
  | "turn.before_append"
  | "turn.after_append"
  | "turn.after_effects"
  | "effects.half_published"
  | "continue.between_executions";

export interface FaultPoints {
  reach(point: FaultPoint): void;
}

export const noFaults: FaultPoints = { reach: () => undefined };

/**
 * `HOLDFAST_ORCHESTRATOR_FAULT=turn.after_append:3` kills this process the third time it gets there;
 * `turn.before_append:3:stop` freezes it there, until somebody wakes it.
 */
export function faultsFrom(setting: string | undefined): FaultPoints {
  if (!setting) return noFaults;
  const [point, count = "1", how] = setting.split(":");
  const signal = how === "stop" ? "SIGSTOP" : "SIGKILL";
  let left = Number(count);
  return {
    reach(reached) {
      if (reached === point && --left === 0) process.kill(process.pid, signal);
    },
  };
}
