/** Failures the engine itself makes. Codes are part of the contract. */
import {
  type Attachment,
  type Failure,
  isEngineOrchestration,
  type LossReason,
  leftOutOrchestration,
} from "../../../schemas/index.ts";
import type { App } from "../../definitions/index.ts";

export const cancelledFailure = (reason?: string): Failure => ({
  code: "cancelled",
  message: reason ? `cancelled: ${reason}` : "cancelled",
  retryable: false,
});

export const terminatedFailure = (reason?: string): Failure => ({
  code: "terminated",
  message: reason ? `terminated: ${reason}` : "terminated",
  retryable: false,
});

type TimeoutKind = "schedule_to_start" | "start_to_close" | "schedule_to_close" | "heartbeat";

export const timeoutFailure = (timeout: TimeoutKind, name: string, ms: number, cause?: Failure): Failure => ({
  code: "timeout",
  message: `activity ${name}: ${timeout} timeout of ${ms} ms`,
  // An attempt that took too long may be tried again; not so if all attempts together did, or if no worker
  // came.
  retryable: timeout === "start_to_close" || timeout === "heartbeat",
  details: { timeout, ms },
  ...(cause ? { cause } : {}),
});

export function sessionLostFailure(
  sessionId: string,
  on: Attachment | undefined,
  reason: LossReason,
  detail?: string,
): Failure {
  const holder = on ? ` held by ${on.workerId}` : "";
  return {
    code: "session_lost",
    message: `session ${sessionId}${holder} was lost (${reason}${detail ? `: ${detail}` : ""})`,
    retryable: false,
    details: { sessionId, epoch: on?.epoch, workerId: on?.workerId, reason, ...(detail ? { detail } : {}) },
  };
}

export const poisonedFailure = (name: string, times: number, cause: Failure): Failure => ({
  code: "poisoned",
  message: `${name} was running each of the ${times} times its session was lost, and is not tried again: ${cause.message}`,
  retryable: false,
  details: { times },
  cause,
});

export const creationTimeoutFailure = (
  sessionId: string,
  type: string,
  ms: number,
  why: string,
): Failure => ({
  code: "session_creation_timeout",
  message: `session ${sessionId} of type ${type} found no worker within ${ms} ms: ${why}`,
  retryable: true,
  details: { sessionId, type, why },
});

export const initFailedFailure = (
  sessionId: string,
  type: string,
  attempts: number,
  cause: Failure,
): Failure => ({
  code: "session_init_failed",
  message: `session ${sessionId} of type ${type}: init failed ${attempts === 1 ? "once" : `${attempts} times`}: ${cause.message}`,
  retryable: false,
  details: { sessionId, type, attempts },
  cause,
});

/** Names the orchestrations of the application, without those of the engine. */
export function unknownOrchestration(app: App, name: string): Failure {
  const names = [...app.orchestrations.keys()].filter(
    (known) => !isEngineOrchestration(known) && known !== leftOutOrchestration,
  );
  return {
    code: "unknown_orchestration",
    message: `no orchestration named "${name}"; there ${names.length === 1 ? "is" : "are"}: ${names.join(", ") || "none"}`,
    retryable: false,
    details: { name, names },
  };
}
