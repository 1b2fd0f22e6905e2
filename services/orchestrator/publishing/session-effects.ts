/** Sessions: claims for workers, closes for holders, and reports to the instances that share or borrow one. */
import { SessionClaim } from "../../../schemas/index.ts";
import { decode } from "../../../shared/bus/index.ts";
import { type Effect, stateOfFirstGeneration } from "../../../shared/replay/index.ts";
import type { Offered } from "../lane/lane-claims.ts";
import { askAtOnce } from "./ask-at-once.ts";
import { claimMessage, engineReport, granteeReport } from "./effect-messages.ts";
import { type EffectOf, executionOf, type Publishing, removeStored, sendToHolder } from "./effect-target.ts";
import { publishEffect } from "./publish.ts";

/** Session id → the outcome of its claim, which was offered straight to a worker. */
export type OfferedClaims = ReadonlyMap<string, Promise<Offered>>;

/** Offers the claims that were planned for the lane before the commit. */
export function offerClaims(by: Publishing, effects: readonly Effect[]): OfferedClaims {
  const { deps, state, lane } = by;
  const offered = new Map<string, Promise<Offered>>();
  for (const effect of effects) {
    if (effect.kind !== "claim" || !isWanted(by, effect)) continue;
    const { sessionId } = effect.session;
    if (lane.claims.isPlanned(sessionId))
      offered.set(sessionId, lane.claims.offer(claimMessage(state, effect, deps)));
  }
  return offered;
}

const isWanted = ({ state }: Publishing, { session, attachment }: EffectOf<"claim">): boolean => {
  const phase = state.sessions.get(session.sessionId)?.phase;
  return phase?.kind === "opening" && phase.attachment === attachment;
};

export async function publishClaim(
  by: Publishing,
  effect: EffectOf<"claim">,
  offered: OfferedClaims,
): Promise<unknown> {
  const { deps, state, target } = by;
  const { session, attachment } = effect;
  if (!isWanted(by, effect)) return;
  if (((await offered.get(session.sessionId)) ?? "unsettled") !== "unsettled") return;
  const claim = claimMessage(state, effect, deps);
  await publishEffect(target.outbox, deps.names.claim(session.type, session.sessionId), claim, {
    msgId: `claim-${state.instanceId}-${session.sessionId}-${attachment}`,
  });
  return askAtOnce(deps, claim);
}

/** The session id may belong to another instance by now, whose claim must stay. */
export async function withdrawClaim(
  by: Publishing,
  { type, sessionId }: { type: string; sessionId: string },
): Promise<void> {
  const { names } = by.deps;
  await removeStored(by, names.claimsStream, names.claim(type, sessionId), ({ body }) => {
    const claim = decode(SessionClaim, body);
    return claim.kind === "ok" && claim.value.instanceId === by.state.instanceId;
  });
}

export function closeSession(
  by: Publishing,
  { session: { sessionId }, on, reason }: EffectOf<"close-session">,
): Promise<unknown> {
  const { epoch } = on;
  const close = { v: 1, kind: "close", epoch, reason } as const;
  return sendToHolder(by, on, sessionId, close, `close-${sessionId}-${epoch}`);
}

export async function tellGrantees(by: Publishing, effect: EffectOf<"tell-grantees">): Promise<unknown> {
  const report = granteeReport(effect);
  if (!report) return;
  const { sessionId, attachments } = effect.session;
  return Promise.all(
    effect.to.map((user) =>
      reportTo(
        by,
        user,
        { ...aboutSession(effect.session), owner: by.state.instanceId, report },
        `grant-${sessionId}-${attachments}-${report.kind}-${user}`,
      ),
    ),
  );
}

export function lendSession(by: Publishing, { session }: EffectOf<"lend">): Promise<unknown> {
  const { sessionId, lending } = session;
  const lent = by.deps.generation.allows(2) ? session : stateOfFirstGeneration(session);
  return reportTo(
    by,
    lending.to.instanceId,
    { ...aboutSession(session), owner: by.state.instanceId, report: { kind: "lent", session: lent } },
    `lent-${sessionId}-${lending.number}`,
  );
}

export function wantSession(by: Publishing, { session }: EffectOf<"want-session">): Promise<unknown> {
  const msgId = `want-${executionOf(by)}-${by.state.lastEventId}`;
  return reportTo(by, session.owner, { ...aboutSession(session), report: { kind: "wanted" } }, msgId);
}

const aboutSession = ({ sessionId, attachments }: { sessionId: string; attachments: number }) => ({
  sessionId,
  attachment: Math.max(1, attachments),
});

/** Sends a report of the engine itself about a session to the instance `to`. */
const reportTo = (
  { deps, target }: Publishing,
  to: string,
  report: Parameters<typeof engineReport>[2],
  msgId: string,
): Promise<unknown> =>
  publishEffect(target.outbox, deps.names.verb(to, "session"), engineReport(deps.capabilities, to, report), {
    msgId,
  });
