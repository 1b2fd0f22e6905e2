/**
 * The laws that hold in every history, whatever the scenario: those the checker can verify from one history
 * alone.
 */
import assert from "node:assert/strict";
import type { Commit } from "../../../schemas/index.ts";
import { historyViolations } from "../../verify/index.ts";

/** Throws with every law that these commits break. */
export function checkHistory(commits: readonly Commit[]): void {
  assert.deepEqual(historyViolations(commits), []);
}
