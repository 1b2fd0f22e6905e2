/** The ways a run of a task can end. User code always ends in one of these; it never throws at the worker. */
import type { Failure, Payload } from "../../../../schemas/index.ts";

export type TaskOutcome =
  | { kind: "completed"; output: Payload }
  | { kind: "failed"; error: Failure }
  | { kind: "timeout"; timeout: "start_to_close" | "heartbeat" | "schedule_to_close"; error: Failure }
  /**
   * An activity on a bare session reports that its state is gone: the session's policy decides, not the
   * retries.
   */
  | { kind: "state_missing"; message: string }
  /** The caller's signal aborted first; the rest of the code's run is ignored. */
  | { kind: "interrupted"; reason: unknown };

/** Outcomes that are reported to the instance. */
export type ReportedOutcome = Exclude<TaskOutcome, { kind: "interrupted" }>;

/** The outcome as logs and metrics name it. */
export function endOf(outcome: TaskOutcome): "completed" | "failed" | "cancelled" | "timeout" {
  switch (outcome.kind) {
    case "completed":
    case "failed":
    case "timeout":
      return outcome.kind;
    case "state_missing":
      return "failed";
    case "interrupted":
      return "cancelled";
  }
}
