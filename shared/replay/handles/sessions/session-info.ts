/** The view that an instance's code has of a session, and its changes to the session's metadata. */
import {
  bareSessionType,
  changedMetadata,
  type MetadataChange,
  SessionId,
} from "../../../../schemas/index.ts";
import { type AnySession, requireMetadata, type SessionInfo } from "../../../definitions/index.ts";
import { SessionLostError, SessionUnusable } from "../../../errors/index.ts";
import type { Context } from "../context.ts";

export function setMetadata(
  ctx: Context,
  id: string,
  wanted: MetadataChange,
  lentBy: { over(): Error | undefined } | undefined,
): void {
  const { runner } = ctx;
  const dead = lentBy?.over() ?? whyUnusable(ctx, id) ?? runner.needs(2, "session.setMetadata");
  if (dead) throw dead;
  const session = runner.state.sessions.get(id);
  if (lentBy || (session && session.owner !== ctx.instanceId)) {
    throw new SessionUnusable({
      code: "session_unusable",
      message: `session ${id} belongs to another instance: only its owner, or a call inside it (ctx.session.setMetadata), may set its metadata`,
    });
  }
  const sessionId = SessionId.parse(id);
  const before = metadataOf(ctx, id);
  const { change } = requireMetadata(before, wanted);
  const bytes = Buffer.byteLength(JSON.stringify(change));
  const event = { kind: "session.metadata_set" as const, sessionId, change };
  const recorded = runner.issueOrRecall<"session.metadata_set">(event, bytes);
  runner.sessions.metadataNow(id, changedMetadata(before, recorded.change));
}

const metadataOf = ({ runner }: Context, id: string): Readonly<Record<string, string>> =>
  runner.sessions.metadata(id) ?? runner.state.sessions.get(id)?.options.metadata ?? {};

/** The error for work on a session that has ended: the work fails at once, because it could only fail later. */
export function whyUnusable({ runner }: Context, id: string): Error | undefined {
  const now = runner.sessions.now(id);
  if (now?.kind === "opened") return undefined;
  const phase = runner.state.sessions.get(id)?.phase;
  if (now?.kind === "closed" || phase?.kind === "closed") {
    return new SessionUnusable({ code: "session_unusable", message: `session ${id} is closed` });
  }
  if (phase?.kind === "lost") {
    const { on, reason, detail } = phase;
    return new SessionLostError({ sessionId: id, epoch: on?.epoch, workerId: on?.workerId, reason, detail });
  }
  if (phase?.kind === "failed") {
    return new SessionUnusable({
      code: "session_unusable",
      message: `session ${id} cannot be used: ${phase.error.message}`,
    });
  }
  return undefined;
}

/** The session's state after the code's acts in this round. */
const stateNow = (now: ReturnType<Context["runner"]["sessions"]["now"]>): SessionInfo["state"] => {
  if (now?.kind === "closed") return "closed";
  return now?.lazy ? "parked" : "opening";
};

export function infoOf(ctx: Context, id: string, type: AnySession | undefined): SessionInfo {
  const { runner } = ctx;
  const now = runner.sessions.now(id);
  const session = now ? undefined : runner.state.sessions.get(id);
  const on = session && "on" in session.phase ? session.phase.on : undefined;
  return {
    id,
    type: session?.type ?? type?.name ?? bareSessionType,
    state: session?.phase.kind ?? stateNow(now),
    epoch: on?.epoch,
    attachment: on?.attachment,
    workerId: on?.workerId,
    host: on?.host,
    resourceId: on?.resourceId,
    inits: session?.inits ?? 0,
    metadata: metadataOf(ctx, id),
  };
}
