/**
 * Errors that users' code threw, for callers who may not see users' values (GATEWAY-7): code and status as they are,
 * message and details as shapes. An audit entry has the code alone.
 */
import { HoldfastError, isFault } from "../../../shared/errors/index.ts";
import { shapeOf } from "../security/index.ts";
import { Problem, toProblem } from "./problem.ts";

/** What comes back under these codes from where users' code runs was written by Holdfast. */
const ownCodes: ReadonlySet<string> = new Set([
  "blob_missing",
  "call_outcome_unknown",
  "instance_ended",
  "instance_not_found",
  "instance_parked",
  "instance_pending",
  "invalid_id",
  "invalid_input",
  "invalid_json",
  "invalid_key",
  "invalid_option",
  "payload_too_large",
  "pool_not_found",
  "query_awaits",
  "query_changes_state",
  "query_timeout",
  "session_config_conflict",
  "session_unreachable",
  "unknown_call",
  "unknown_query",
  "unknown_session_type",
  "unknown_update",
  "update_interrupted",
  "update_timeout",
  "validator_broken",
]);

function isOwn(thrown: unknown): boolean {
  if (!(thrown instanceof HoldfastError)) return true;
  return isFault(thrown.cause) || ownCodes.has(thrown.code);
}

/** What to throw instead. */
export function withoutUsersWords(thrown: unknown): unknown {
  if (isOwn(thrown)) return thrown;
  const { message, details, ...rest } = toProblem(thrown).init;
  return new Problem({ ...rest, message: String(shapeOf(message)), details: shapeOf(details) });
}

export const auditedWords = (thrown: unknown): string =>
  thrown instanceof HoldfastError && !isOwn(thrown) ? thrown.code : wordsOf(thrown);

export const wordsOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);
