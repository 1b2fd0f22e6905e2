/**
 * Telling an instance that it lost a session (S5). The same from the expiry and from reconciling, and the same message
 * id, so that whoever comes second is recognised; after the server's window the instance itself knows (its attachment
 * is over).
 */
import type { SessionRecord, SessionReport } from "../../schemas/index.ts";
import { encode, leaseKeys } from "../../shared/bus/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import type { WatcherDeps } from "./deps.ts";

export interface Loss {
  attachment: number;
  detail: string;
  /** Server time of the expiry, where there was one. */
  expiredAt: number | undefined;
}

export type LossVerdict = { kind: "tell" } | { kind: "skip"; why: "superseded" | "over" };

/** Pure: what the register says about the end of this attachment. */
export function judgeLoss(record: SessionRecord, attachment: number): LossVerdict {
  if (record.attachment > attachment) return { kind: "skip", why: "superseded" };
  // Older: the owner attached by itself (S14) and its instance has not heard yet. Its end is news all the same.
  if (record.attachment < attachment) return { kind: "tell" };
  switch (record.phase) {
    case "opening":
    case "claimed":
    case "active":
    case "rebuilding":
      return { kind: "tell" };
    case "parked":
    case "lost":
    case "failed":
    case "closed":
      return { kind: "skip", why: "over" };
  }
}

/** S14: the owner came back under the next attachment before anybody was told. */
export async function isAttachedAgain(
  { registers }: WatcherDeps,
  sessionId: string,
  attachment: number,
): Promise<boolean> {
  const look = await registers.leases.look(leaseKeys.session(sessionId, attachment + 1));
  return look.kind === "held";
}

/** Throws a transient fault where the server did not answer: to be done again. */
export async function reportLoss(
  deps: WatcherDeps,
  record: SessionRecord,
  loss: Loss,
): Promise<"told" | "repeated"> {
  const { bus, names, runtime, counters } = deps;
  const { sessionId, instanceId } = record;
  const { attachment, detail, expiredAt } = loss;
  const epoch = record.attachment === attachment ? record.epoch : undefined;
  const report: SessionReport = {
    v: 1,
    sessionId,
    attachment,
    report: { kind: "lost", reason: "expired", detail, ...(epoch !== undefined && { epoch }) },
  };
  const outcome = await bus.publish(names.verb(instanceId, "session"), encode(report), {
    msgId: `lost-${sessionId}-${attachment}`,
  });
  if (outcome.kind !== "stored") {
    throw new Fault("transient", {
      code: "loss_unanswered",
      message: `no answer to the loss of session ${sessionId}, attachment ${attachment}`,
    });
  }
  if (outcome.duplicate) {
    counters.repeated++;
    return "repeated";
  }
  counters.lost++;
  const lateMs = expiredAt === undefined ? undefined : Math.max(0, runtime.clock.now() - expiredAt);
  runtime.announce({
    kind: "session.lost",
    sessionId,
    instanceId,
    attachment,
    reason: "expired",
    ...(lateMs !== undefined && { lateMs }),
  });
  return "told";
}
