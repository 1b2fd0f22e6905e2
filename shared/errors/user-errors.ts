/**
 * Errors users catch. Matched by `code`, which survives the wire and duplicate copies of this package;
 * `instanceof` works within one copy.
 */
import type { LossReason } from "../../schemas/index.ts";

/** The fields of a HoldfastError. */
export interface HoldfastErrorInit {
  code: string;
  message: string;
  retryable?: boolean;
  details?: unknown;
  cause?: unknown;
}

/**
 * Every error Holdfast throws. `code` is stable; `hint` says what to do. All codes: docs/errors.md.
 *
 * @example
 * ```ts
 * try {
 *   await client.signal(id, "approve");
 * } catch (error) {
 *   if (error instanceof HoldfastError && error.code === "unknown_instance") return;
 *   throw error;
 * }
 * ```
 */
export class HoldfastError extends Error {
  override name = "HoldfastError";
  readonly code: string;
  readonly retryable: boolean;
  readonly details: unknown;

  constructor(init: HoldfastErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = init.code;
    this.retryable = init.retryable ?? false;
    this.details = init.details;
  }
}

/**
 * Thrown by an activity or a call that must not be tried again.
 *
 * @example
 * ```ts
 * if (reply.status === 402) throw new NonRetryableError("the card was declined");
 * ```
 */
export class NonRetryableError extends HoldfastError {
  override name = "NonRetryableError";
  constructor(message: string, init: { code?: string; details?: unknown; cause?: unknown } = {}) {
    super({ code: "non_retryable", message, ...init, retryable: false });
  }
}

/**
 * The activity's own error, as it reaches the orchestration after the last attempt.
 *
 * @example
 * ```ts
 * try {
 *   await ctx.run(charge, order);
 * } catch (error) {
 *   if (error instanceof ActivityError && error.code === "non_retryable") return "not paid";
 *   throw error;
 * }
 * ```
 */
export class ActivityError extends HoldfastError {
  override name = "ActivityError";
}

/** A child orchestration failed. `cause` has its error. */
export class ChildError extends HoldfastError {
  override name = "ChildError";
}

/** The instance, or the scope around this work, was cancelled. */
export class CancelledError extends HoldfastError {
  override name = "CancelledError";
  constructor(message = "cancelled") {
    super({ code: "cancelled", message });
  }
}

/** One of the four activity timeouts; `details.timeout` says which. */
export class TimeoutError extends HoldfastError {
  override name = "TimeoutError";
}

/** The lost session, its last holder, and the reason of the loss. */
export interface SessionLostDetails {
  sessionId: string;
  epoch?: number | undefined;
  workerId?: string | undefined;
  reason: LossReason;
  detail?: string | undefined;
}

/**
 * The worker that held the session is gone, and its state with it. `code` is `session_lost`.
 *
 * @example
 * ```ts
 * for (;;) {
 *   try {
 *     await using session = await ctx.openSession(model);
 *     return await session.generate(prompt);
 *   } catch (error) {
 *     if (!isSessionLost(error)) throw error;
 *   }
 * }
 * ```
 */
export class SessionLostError extends HoldfastError {
  override name = "SessionLostError";
  readonly sessionId: string;
  readonly epoch: number | undefined;
  readonly workerId: string | undefined;
  readonly reason: LossReason;

  /** User code on a bare session may throw this with just a message, if its own state is missing. */
  constructor(details: SessionLostDetails | string) {
    const known: SessionLostDetails =
      typeof details === "string" ? { sessionId: "", reason: "aborted", detail: details } : details;
    const holder = known.workerId ? ` held by ${known.workerId}` : "";
    super({
      code: "session_lost",
      message:
        typeof details === "string"
          ? details
          : `session ${known.sessionId}${holder} was lost (${known.reason}${known.detail ? `: ${known.detail}` : ""})`,
      details: known,
    });
    this.sessionId = known.sessionId;
    this.epoch = known.epoch;
    this.workerId = known.workerId;
    this.reason = known.reason;
  }
}

/** No worker took the session within its `creationTimeout`. The message says why. */
export class SessionCreationTimeout extends HoldfastError {
  override name = "SessionCreationTimeout";
}

/** The session's `init` failed on every worker that tried. `cause` has the last error. */
export class SessionInitFailed extends HoldfastError {
  override name = "SessionInitFailed";
}

/** No live worker has the resource on which the session was to be opened (`ctx.recreateSession`). */
export class SessionResourceGone extends HoldfastError {
  override name = "SessionResourceGone";
}

/** A quota of the installation is reached, and the opening was not to wait; `details.quota` says which. */
export class SessionQuotaExceeded extends HoldfastError {
  override name = "SessionQuotaExceeded";
}

/** A session was used after it was closed, or belongs to another instance. */
export class SessionUnusable extends HoldfastError {
  override name = "SessionUnusable";
}

function hasCode(error: unknown, code: string): boolean {
  try {
    return typeof error === "object" && error !== null && "code" in error && error.code === code;
  } catch {
    return false; // a getter or a proxy that throws: not an error of this package
  }
}

/** True if the error says that a session's worker was lost; see `SessionLostError`. */
export const isSessionLost = (error: unknown): error is SessionLostError => hasCode(error, "session_lost");
/**
 * True if the error says that this work was cancelled.
 *
 * @example
 * ```ts
 * try {
 *   await ctx.run(render, scene);
 * } catch (error) {
 *   if (isCancelled(error)) await ctx.uncancellable((inner) => inner.run(removeDraft, scene));
 *   throw error;
 * }
 * ```
 */
export const isCancelled = (error: unknown): error is CancelledError => hasCode(error, "cancelled");
