/** The ways an attachment ends. The differences between them are decided here, once. */
import type { Failure, LossReason, RunningCall } from "../../../../schemas/index.ts";
import { CancelledError, HoldfastError, SessionLostError } from "../../../../shared/errors/index.ts";
import type { LossWhy } from "../../../../shared/leases/index.ts";

export type SessionEnding =
  /** The instance closed the session. */
  | { kind: "closed"; reason?: string | undefined }
  /** No call came for too long: the next call claims the session anew. */
  | { kind: "parked" }
  | { kind: "init_failed"; error: Failure }
  /** This worker gives the session up and reports it. */
  | {
      kind: "given_up";
      reason: LossReason;
      detail?: string | undefined;
      /** The calls whose code ran at that moment: calls that waited did not cause the loss. */
      running?: readonly RunningCall[] | undefined;
    }
  /** The right to act is over: no report may be sent any more (S7). */
  | { kind: "fenced"; why: LossWhy };

interface SessionName {
  sessionId: string;
  epoch: number;
  workerId: string;
}

/** The abort reason that running code sees on its signal. */
export function abortReason(ending: SessionEnding, name: SessionName): Error {
  switch (ending.kind) {
    case "closed":
      return new CancelledError(ending.reason ?? "the session is closing");
    case "parked":
      return new CancelledError("the session is being parked");
    case "init_failed":
      return new HoldfastError({ code: "session_init_failed", message: ending.error.message });
    case "given_up":
      return new SessionLostError({ ...name, reason: ending.reason, detail: ending.detail });
    case "fenced":
      return new SessionLostError({ ...name, reason: "expired", detail: `lease ${ending.why}` });
  }
}

/** The ending as people see it, in the catalogue of happenings. */
export function describeEnding(ending: SessionEnding): { why: string; detail?: string } {
  switch (ending.kind) {
    case "closed":
    case "parked":
      return { why: ending.kind };
    case "init_failed":
      return { why: ending.kind, detail: ending.error.message };
    case "given_up":
      return { why: ending.reason, ...(ending.detail === undefined ? {} : { detail: ending.detail }) };
    case "fenced":
      return { why: "fenced", detail: `lease ${ending.why}` };
  }
}

/** Planned ends let running calls finish first, and save the state. */
export const isPlanned = (ending: SessionEnding): boolean =>
  ending.kind === "given_up" && (ending.reason === "drained" || ending.reason === "recycled");
