/**
 * Reports to an instance that it lost a session (S5). The report after an expiry and the one after
 * reconciling have the same message id, so the server recognises the second; after the server's duplicate
 * window the instance itself does (its attachment is over).
 */
import type { SessionRecord, SessionReport } from "../../schemas/index.ts";
import { encode, inInbox, leaseKeys, publishAnew } from "../../shared/bus/index.ts";
import { Fault } from "../../shared/errors/index.ts";
import type { WatcherDeps } from "./deps.ts";

export interface Loss {
  attachment: number;
  detail: string;
  /** Server time of the expiry; undefined if none was seen. */
  expiredAt: number | undefined;
}

type LossVerdict = { kind: "report" } | { kind: "skip"; why: "superseded" | "over" };

/** Pure: decides from the register entry whether the end of this attachment must be reported. */
export function judgeLoss(record: SessionRecord, attachment: number): LossVerdict {
  if (record.attachment > attachment) return { kind: "skip", why: "superseded" };
  // The entry is older: the holder attached again by itself (S14), and its instance does not know yet. The
  // loss must be reported all the same.
  if (record.attachment < attachment) return { kind: "report" };
  switch (record.phase) {
    case "opening":
    case "claimed":
    case "active":
    case "rebuilding":
      return { kind: "report" };
    case "parked":
    case "lost":
    case "failed":
    case "closed":
      return { kind: "skip", why: "over" };
  }
}

/** S14: true if the holder came back under the next attachment before the loss was reported. */
export async function isAttachedAgain(
  { registers }: WatcherDeps,
  sessionId: string,
  attachment: number,
): Promise<boolean> {
  const look = await registers.leases.look(leaseKeys.session(sessionId, attachment + 1));
  return look.kind === "held";
}

/** Throws a transient fault if the server did not answer; the caller tries again. */
export async function reportLoss(
  deps: WatcherDeps,
  record: SessionRecord,
  loss: Loss,
): Promise<"reported" | "repeated"> {
  const { bus, names, runtime, counters } = deps;
  const { sessionId, instanceId } = record;
  const { attachment, detail, expiredAt } = loss;
  const epoch = record.attachment === attachment ? record.epoch : undefined;
  const report: SessionReport = {
    v: 1,
    sessionId,
    attachment,
    report: { kind: "lost", reason: "expired", detail, ...(epoch !== undefined && { epoch }) },
    capability: record.lossCapability,
  };
  const outcome = await publishAnew(bus, runtime.random, names.verb(instanceId, "session"), encode(report), {
    msgId: `lost-${sessionId}-${attachment}`,
    original: inInbox(names, instanceId),
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
  return "reported";
}
