/**
 * Converts errors to data and back. Whatever user code throws (strings, undefined, cycles) becomes a Failure.
 */
import type { Failure } from "../../schemas/index.ts";
import { isFault } from "./fault.ts";
import {
  ActivityError,
  CancelledError,
  ChildError,
  HoldfastError,
  SessionCreationTimeout,
  SessionInitFailed,
  type SessionLostDetails,
  SessionLostError,
  SessionQuotaExceeded,
  SessionResourceGone,
  SessionUnusable,
  TimeoutError,
} from "./user-errors.ts";
import { isDeeperThan } from "./value-limits.ts";

const maxDepth = 5;
const maxText = 8192;
/** Details travel inside causes inside reports: the receiver could not read deeper ones. */
const maxDetailsDepth = 100;
const codePattern = /^[A-Za-z0-9_.:-]{1,128}$/;

export function toFailure(thrown: unknown, depth = 0): Failure {
  try {
    return read(thrown, depth);
  } catch {
    // Getters and proxies may throw: even reading the thrown value can fail.
    return { code: "thrown_value", message: "threw a value that cannot be read", retryable: true };
  }
}

/**
 * For whatever running users' code throws. Faults of the engine go without their stack; their kind says whether
 * trying again may help.
 */
export function failureOf(thrown: unknown): Failure {
  if (!isFault(thrown)) return toFailure(thrown);
  return { code: thrown.code, message: thrown.message, retryable: thrown.kind === "transient" };
}

function read(thrown: unknown, depth: number): Failure {
  if (!(thrown instanceof Error)) {
    return { code: "thrown_value", message: `threw ${describe(thrown)}`, retryable: true };
  }
  const failure: Failure = {
    code: codeOf(thrown),
    message: clip(String(thrown.message)),
    retryable: retryableOf(thrown),
  };
  const details = jsonOrUndefined("details" in thrown ? thrown.details : undefined);
  if (details !== undefined) failure.details = details;
  if (typeof thrown.stack === "string") failure.stack = clip(thrown.stack);
  if (thrown.cause !== undefined && depth < maxDepth) failure.cause = toFailure(thrown.cause, depth + 1);
  return failure;
}

function codeOf(error: Error): string {
  if ("code" in error && typeof error.code === "string" && codePattern.test(error.code)) return error.code;
  return codePattern.test(error.name) ? error.name : "Error";
}

function retryableOf(error: Error): boolean {
  return "retryable" in error && typeof error.retryable === "boolean" ? error.retryable : true;
}

const clip = (text: string): string => (text.length > maxText ? `${text.slice(0, maxText)}…` : text);

function describe(value: unknown): string {
  if (typeof value === "string") return clip(JSON.stringify(value));
  const json = jsonOrUndefined(value);
  return json === undefined ? String(typeof value) : clip(JSON.stringify(json));
}

function jsonOrUndefined(value: unknown): unknown {
  if (value === undefined) return undefined;
  try {
    const text = JSON.stringify(value);
    if (text === undefined || text.length > maxText || isDeeperThan(text, maxDetailsDepth)) return undefined;
    return JSON.parse(text);
  } catch {
    return undefined; // cycles, BigInt, throwing toJSON: the message alone must do
  }
}

type Fallback = new (init: ConstructorParameters<typeof HoldfastError>[0]) => HoldfastError;

/**
 * Rebuilds the error class that users match on from the stable code; any other code becomes `fallback`. The
 * stack is that of the place where the error was thrown, in whatever language.
 */
export function fromFailure(failure: Failure, fallback: Fallback = HoldfastError): HoldfastError {
  const error = rebuilt(failure, fallback);
  if (failure.stack !== undefined) error.stack = failure.stack;
  return error;
}

function rebuilt(failure: Failure, fallback: Fallback): HoldfastError {
  const init = {
    code: failure.code,
    message: failure.message,
    retryable: failure.retryable,
    details: failure.details,
    cause: failure.cause ? fromFailure(failure.cause) : undefined,
  };
  switch (failure.code) {
    case "cancelled":
      return new CancelledError(failure.message);
    case "session_lost":
      return isLostDetails(failure.details)
        ? new SessionLostError(failure.details)
        : new SessionLostError(failure.message);
    case "session_creation_timeout":
      return new SessionCreationTimeout(init);
    case "session_init_failed":
      return new SessionInitFailed(init);
    case "session_quota_exceeded":
      return new SessionQuotaExceeded(init);
    case "session_resource_gone":
      return new SessionResourceGone(init);
    case "session_unusable":
      return new SessionUnusable(init);
    case "timeout":
      return new TimeoutError(init);
    default:
      return new fallback(init);
  }
}

const isLostDetails = (details: unknown): details is SessionLostDetails =>
  typeof details === "object" && details !== null && "sessionId" in details && "reason" in details;

export const activityErrorFrom = (failure: Failure): HoldfastError => fromFailure(failure, ActivityError);
export const childErrorFrom = (failure: Failure): HoldfastError => fromFailure(failure, ChildError);
