/**
 * A law that a single history proves or breaks: fed commit by commit, in order, without ever holding the
 * whole history.
 */
import type { Commit } from "../../../schemas/index.ts";
import type { OnViolation } from "../report.ts";

export interface HistoryWatch {
  commit(commit: Commit, execution: number): void;
  /** Called after the last commit. */
  end?(): void;
}

export interface HistoryLaw {
  /** Calls `onViolation` as soon as a violation is seen. */
  begin(onViolation: OnViolation): HistoryWatch;
}

/** Signals before the start belong to the first execution. */
export const executionOf = (commit: Commit): number => Math.max(1, commit.execution);
