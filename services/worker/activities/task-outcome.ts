/** How the run of a task can end. Everything user code does ends in one of these; nothing is thrown at the worker. */
import type { Failure, Payload } from "../../../schemas/index.ts";

export type TaskOutcome =
  | { kind: "completed"; output: Payload }
  | { kind: "failed"; error: Failure }
  | { kind: "timeout"; timeout: "start_to_close" | "heartbeat" | "schedule_to_close"; error: Failure }
  /** A bare session's activity says that its state is gone: the session's policy decides, not the retries. */
  | { kind: "state_missing"; message: string }
  /** The caller's signal aborted first; what the code does from now on concerns nobody. */
  | { kind: "interrupted"; reason: unknown };

/** Outcomes the instance is told about. */
export type ReportedOutcome = Exclude<TaskOutcome, { kind: "interrupted" }>;
