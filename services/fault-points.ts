/**
 * Named places where a crash must do no harm. They do nothing unless a test switches one on: then the process, or the
 * simulated one, dies exactly there.
 */
export interface FaultPoints<Point extends string> {
  /** `session`: the session whose work has got there. */
  reach(point: Point, session?: SessionAtPoint): void;
}

export interface SessionAtPoint {
  readonly id: string;
  readonly type: string;
}

/**
 * `turn.after_append:3` kills this process the third time it gets there; `turn.before_append:3:stop` freezes
 * it there until it receives SIGCONT.
 */
export function faultsFrom<Point extends string>(
  setting: string | undefined,
): FaultPoints<Point> | undefined {
  if (!setting) return undefined;
  const [point, count = "1", how] = setting.split(":");
  const signal = how === "stop" ? "SIGSTOP" : "SIGKILL";
  let left = Number(count);
  return {
    reach(reached) {
      if (reached === point && --left === 0) process.kill(process.pid, signal);
    },
  };
}
