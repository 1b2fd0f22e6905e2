/** User options with defaults, as they are recorded in history. */
import {
  type ActivityTimeouts,
  bareSessionType,
  lossPolicies,
  type OnLost,
  type Payload,
  RetryPolicy,
  SessionOptions,
} from "../../../schemas/index.ts";
import type {
  ActivityOptions,
  AnySession,
  OpenSessionOptions,
  RetryOptions,
} from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { type Duration, hash32, parseDuration } from "../../runtime/index.ts";
import { requireOptions } from "./require.ts";

export const defaultQueue = "default";
const defaultCreationTimeoutMs = 30_000;

/** An activity is tried three times; a session's call once, because its state may have changed. */
export function retryPolicy(options: RetryOptions | undefined, maxAttempts: number): RetryPolicy {
  const { initialDelay = 200, maxDelay = 30_000, factor = 2, nonRetryable = [] } = options ?? {};
  const policy = {
    maxAttempts: positive(options?.maxAttempts ?? maxAttempts, "retry.maxAttempts"),
    initialDelayMs: parseDuration(initialDelay, "retry.initialDelay"),
    maxDelayMs: parseDuration(maxDelay, "retry.maxDelay"),
    factor,
    nonRetryable,
  };
  return options ? requireOptions(RetryPolicy, "retry", policy) : policy;
}

const positive = (value: number, what: string): number => {
  if (Number.isInteger(value) && value >= 1) return value;
  throw new HoldfastError({
    code: "invalid_option",
    message: `${what} must be a whole number of at least 1, not ${value}`,
  });
};

export function timeouts(options: ActivityOptions): ActivityTimeouts {
  const result: ActivityTimeouts = {};
  if (options.scheduleToStart !== undefined)
    result.scheduleToStartMs = atLeast1(options.scheduleToStart, "scheduleToStart");
  if (options.startToClose !== undefined)
    result.startToCloseMs = atLeast1(options.startToClose, "startToClose");
  if (options.scheduleToClose !== undefined)
    result.scheduleToCloseMs = atLeast1(options.scheduleToClose, "scheduleToClose");
  if (options.heartbeatTimeout !== undefined)
    result.heartbeatMs = atLeast1(options.heartbeatTimeout, "heartbeatTimeout");
  return result;
}

const atLeast1 = (value: Duration, what: string): number => positive(parseDuration(value, what), what);

export function sessionOptions(
  type: AnySession | undefined,
  own: OpenSessionOptions,
  rebuildInput: Payload,
): SessionOptions {
  const ofType = type?.options ?? {};
  const pick = (what: "creationTimeout" | "executionTimeout" | "idleTimeout" | "leaseTtl") => {
    const value = own[what] ?? ofType[what];
    return value === undefined ? undefined : parseDuration(value, what);
  };
  const executionTimeoutMs = pick("executionTimeout");
  // The default never exceeds executionTimeout, so that an option the user did not set cannot be refused.
  const creationTimeoutMs =
    pick("creationTimeout") ??
    Math.min(defaultCreationTimeoutMs, executionTimeoutMs ?? Number.POSITIVE_INFINITY);
  const idleTimeoutMs = pick("idleTimeout");
  const leaseTtlMs = pick("leaseTtl");
  const chosenKey = own.placement?.affinityKey ?? ofType.affinityKey;
  const onLost = own.onLost ?? (own.recovery?.rebuild ? "rebuild" : "fail");
  const rebuild = own.recovery?.rebuild;
  refuseContradictions(
    { creationTimeoutMs, executionTimeoutMs, idleTimeoutMs, leaseTtlMs, onLost },
    type,
    rebuild !== undefined,
  );
  return requireOptions(SessionOptions, `session "${type?.name ?? bareSessionType}"`, {
    creationTimeoutMs,
    executionTimeoutMs,
    idleTimeoutMs,
    leaseTtlMs,
    onLost,
    maxAutoRetries: own.recovery?.maxAutoRetries ?? 3,
    maxInitAttempts: own.maxInitAttempts ?? 3,
    rebuild: rebuild
      ? {
          activity: typeof rebuild.activity === "string" ? rebuild.activity : rebuild.activity.name,
          input: rebuildInput,
        }
      : undefined,
    requires: {
      tags: [...new Set([...(ofType.requires?.tags ?? []), ...(own.placement?.tags ?? [])])],
      resources: { ...ofType.requires?.resources, ...own.placement?.resources },
    },
    buildId: own.placement?.buildId,
    resourceId: undefined,
    affinityKey:
      chosenKey ?? `${type?.name ?? "bare"}-${hash32(JSON.stringify(own.config ?? null)).toString(36)}`,
    lazy: own.lazy ?? false,
    ...atOnce(type, own),
    ...whenFull(own),
    ...(chosenKey !== undefined && { affinity: "chosen" }),
    metadata: own.metadata ?? {},
  });
}

function whenFull({ whenFull }: OpenSessionOptions): Pick<SessionOptions, "whenFull"> {
  switch (whenFull) {
    case undefined:
    case "wait":
      return {};
    case "fail":
      return { whenFull };
    default: {
      const message = `whenFull must be "wait" or "fail", not ${JSON.stringify(whenFull)}`;
      throw new HoldfastError({ code: "invalid_option", message });
    }
  }
}

/** How many calls may run at a time. When a session is lost, at most that many calls may have begun. */
function atOnce(
  type: AnySession | undefined,
  own: OpenSessionOptions,
): Pick<SessionOptions, "concurrency" | "maxBatch"> {
  if (!type) {
    if (own.concurrency === undefined) return { concurrency: "slots" };
    return { concurrency: positive(own.concurrency, "concurrency") };
  }
  if (own.concurrency !== undefined) {
    const message = `concurrency is an option of sessions without a type: set it in defineSession("${type.name}", …)`;
    throw new HoldfastError({ code: "invalid_option", message });
  }
  const { concurrency = 1 } = type.options;
  const maxBatch = Math.max(1, ...Object.values(type.calls).map(({ batch }) => batch?.maxSize ?? 1));
  return { ...(concurrency > 1 && { concurrency }), ...(maxBatch > 1 && { maxBatch }) };
}

export function refuseUnusedRebuild({ onLost, recovery }: OpenSessionOptions): void {
  if (!recovery?.rebuild || onLost === undefined || lossPolicies[onLost]?.rebuilds) return;
  const message = `recovery.rebuild is never run with onLost: "${onLost}": leave onLost out, or set onLost: "rebuild"`;
  throw new HoldfastError({ code: "invalid_option", message });
}

interface SessionTimes {
  creationTimeoutMs: number;
  executionTimeoutMs: number | undefined;
  idleTimeoutMs: number | undefined;
  leaseTtlMs: number | undefined;
  onLost: OnLost;
}

function refuseContradictions(times: SessionTimes, type: AnySession | undefined, hasRebuild: boolean): void {
  const refuse = (message: string) => {
    throw new HoldfastError({ code: "invalid_option", message });
  };
  const { leaseTtlMs, executionTimeoutMs, idleTimeoutMs, creationTimeoutMs, onLost } = times;
  if (creationTimeoutMs < 1) refuse("creationTimeout must be at least 1 ms");
  if (leaseTtlMs !== undefined && (leaseTtlMs < 1000 || leaseTtlMs % 1000 !== 0)) {
    refuse(`leaseTtl must be whole seconds, at least 1 s, not ${leaseTtlMs} ms`);
  }
  if (executionTimeoutMs !== undefined && executionTimeoutMs < creationTimeoutMs) {
    refuse(
      `executionTimeout (${executionTimeoutMs} ms) is shorter than creationTimeout (${creationTimeoutMs} ms)`,
    );
  }
  if (executionTimeoutMs !== undefined && idleTimeoutMs !== undefined && idleTimeoutMs > executionTimeoutMs) {
    refuse(`idleTimeout (${idleTimeoutMs} ms) is longer than executionTimeout (${executionTimeoutMs} ms)`);
  }
  // JavaScript code may pass an unknown policy: the schema of all options reports it.
  const needs = lossPolicies[onLost]?.needs;
  if (needs === "recovery.rebuild" && !hasRebuild) refuse(`onLost: "${onLost}" needs ${needs}`);
  if (needs === "checkpoint and restore" && type && !type.restore)
    refuse(`onLost: "${onLost}" needs ${needs} on session "${type.name}"`);
  if (needs === "checkpoint and restore" && !type)
    refuse(`onLost: "${onLost}" needs a session type with ${needs}`);
}
