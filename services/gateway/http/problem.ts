/**
 * A caller's mistake, or the reason why the gateway cannot act. Answered as `{ok: false, error}`; never a
 * stack.
 */
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { z } from "zod";
import { HoldfastError, isFault } from "../../../shared/errors/index.ts";

export const ProblemBody = z.strictObject({
  ok: z.literal(false),
  error: z.strictObject({
    /** Stable: programs match on it. */
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
    details: z.unknown().optional(),
  }),
});
export type ProblemBody = z.infer<typeof ProblemBody>;

interface ProblemInit {
  status: ContentfulStatusCode;
  code: string;
  message: string;
  hint?: string | undefined;
  details?: unknown;
  retryAfterSeconds?: number;
}

export class Problem extends Error {
  override readonly name = "Problem";
  readonly init: ProblemInit;

  constructor(init: ProblemInit) {
    super(init.message);
    this.init = init;
  }

  body(): ProblemBody {
    const { code, message, hint, details } = this.init;
    return {
      ok: false,
      error: {
        code,
        message,
        ...(hint === undefined ? {} : { hint }),
        ...(details === undefined ? {} : { details }),
      },
    };
  }
}

export const notFound = (what: string, id: string): Problem =>
  new Problem({ status: 404, code: "not_found", message: `${what} ${id} is not known here` });

export const busAway = (): Problem =>
  new Problem({
    status: 503,
    code: "bus_away",
    message: "NATS cannot be reached from the gateway",
    hint: "The gateway keeps trying. Check that nats-server runs and that NATS_URL points at it.",
    retryAfterSeconds: 2,
  });

export const unknownOutcome = (): Problem =>
  new Problem({
    status: 503,
    code: "outcome_unknown",
    message: "NATS did not answer in time: the request may or may not have been stored",
    hint: "Send it again with the same id: a repeated message is applied once.",
    retryAfterSeconds: 1,
  });

export const tooMany = (seconds: number): Problem =>
  new Problem({
    status: 429,
    code: "too_many_requests",
    message: "Too many requests",
    hint: `Wait ${seconds} s. GATEWAY_RATE_LIMIT sets how many a second are allowed.`,
    retryAfterSeconds: seconds,
  });

const statusByCode: Readonly<Record<string, ContentfulStatusCode>> = {
  not_found: 404,
  instance_not_found: 404,
  session_not_found: 404,
  blob_missing: 404,
  schedule_not_found: 404,
  schedule_exists: 409,
  schedule_ended: 409,
  dead_letter_not_found: 404,
  not_retryable: 409,
  outcome_unknown: 503,
  instance_ended: 409,
  instance_pending: 409,
  instance_parked: 409,
  unknown_query: 404,
  unknown_update: 404,
  update_refused: 409,
  update_interrupted: 409,
  update_timeout: 504,
  query_timeout: 504,
  pool_not_found: 404,
  unknown_session_type: 404,
  unknown_call: 404,
  session_config_conflict: 409,
  session_unreachable: 503,
  call_outcome_unknown: 503,
  session_unheld: 409,
  session_unusable: 409,
  session_lost: 409,
  worker_not_found: 504,
  payload_too_large: 413,
  timeout: 504,
};

/** Turns every thrown error into a problem; an unexpected error reveals nothing of the code. */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  if (isFault(thrown)) {
    const { code, message, hint } = thrown;
    switch (thrown.kind) {
      case "contract":
      case "application":
        return new Problem({ status: statusByCode[code] ?? 400, code, message, hint });
      case "transient":
        return new Problem({ status: 503, code, message, hint, retryAfterSeconds: 2 });
      case "nondeterminism":
        return new Problem({ status: 409, code, message, hint });
      case "config":
      case "bug":
        return new Problem({ status: 500, code, message, hint });
    }
  }
  if (thrown instanceof HoldfastError) {
    // The client wraps the engine's own fault, whose kind is more precise than the code.
    if (isFault(thrown.cause)) return toProblem(thrown.cause);
    const { code, message, details } = thrown;
    return new Problem({ status: statusByCode[code] ?? 400, code, message, details });
  }
  return new Problem({
    status: 500,
    code: "internal",
    message: "The gateway failed to answer; its log has the reason",
  });
}

export const isUnexpected = (thrown: unknown): boolean =>
  !(thrown instanceof Problem) && !isFault(thrown) && !(thrown instanceof HoldfastError);
