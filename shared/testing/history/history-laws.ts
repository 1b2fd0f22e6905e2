/**
 * The laws that hold in every history, whatever the scenario: those the checker can verify from one history
 * alone.
 */
import assert from "node:assert/strict";
import type { Commit } from "../../../schemas/index.ts";
import { historyViolations } from "../../verify/index.ts";

/**
 * Throws if these commits break a law of histories; the error lists every violation.
 *
 * @example
 * ```ts
 * const { commits } = await env.client.historyFile("order-7");
 * checkHistory(commits);
 * ```
 */
export function checkHistory(commits: readonly Commit[]): void {
  assert.deepEqual(historyViolations(commits), []);
}
