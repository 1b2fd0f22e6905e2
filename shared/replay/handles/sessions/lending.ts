/** Operations on sessions that other instances use, for the engine's own keepers only. */
import type { Borrower, Failure, Lending, Name, SessionState } from "../../../../schemas/index.ts";
import { SessionId } from "../../../../schemas/index.ts";
import type { OrchestrationContext } from "../../../definitions/index.ts";
import { runnerOf } from "../context.ts";

export function lend(ctx: OrchestrationContext, sessionId: string, lending: Lending): void {
  runnerOf(ctx).issue({ kind: "session.lent", sessionId: SessionId.parse(sessionId), lending });
}

export function takeBack(ctx: OrchestrationContext, sessionId: string): void {
  runnerOf(ctx).issue({ kind: "session.returned", sessionId: SessionId.parse(sessionId) });
}

/** Takes the session back from one of several borrowers. */
export function takeBackFrom(ctx: OrchestrationContext, sessionId: string, from: Borrower): void {
  runnerOf(ctx).issue({ kind: "session.returned", sessionId: SessionId.parse(sessionId), from });
}

/** Tells the borrower that it does not get the session, and why. */
export function refuseToLend(
  ctx: OrchestrationContext,
  sessionId: string,
  lending: Lending,
  refused: { type: Name; error: Failure },
): void {
  runnerOf(ctx).issue({ kind: "session.lent", sessionId: SessionId.parse(sessionId), lending, refused });
}

/** Calls `tell` once, when the session is parked, failed or lost for good. */
export function whenOver(ctx: OrchestrationContext, sessionId: string, tell: () => void): void {
  runnerOf(ctx).sessions.whenOver(sessionId, tell);
}

/** Closes the session even if no worker holds it yet. */
export function closeNow(ctx: OrchestrationContext, sessionId: string): void {
  runnerOf(ctx).closeSession(SessionId.parse(sessionId));
}

export function phaseOf(ctx: OrchestrationContext, sessionId: string): SessionState["phase"] | undefined {
  return runnerOf(ctx).state.sessions.get(sessionId)?.phase;
}
