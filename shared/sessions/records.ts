/**
 * Makes a session's entry in the register from its instance's state. Pure; writing the same state twice
 * changes nothing.
 */
import {
  holderIn,
  InstanceId,
  keyMetadataKey,
  type SessionPhase,
  type SessionRecord,
  SessionRecord as SessionRecordSchema,
  type SessionState,
  unknownFields,
  wireObject,
} from "../../schemas/index.ts";
import { decode, type Headers, headerNames } from "../bus/index.ts";

type Owner = SessionRecord["owners"][number];

/** Number of past holders kept. */
const maxOwners = 20;

export function recordOf(
  state: SessionState,
  previous: SessionRecord | undefined,
  now: number,
): SessionRecord {
  const { phase, options } = state;
  const on = holderIn(phase);
  const sameHolder = on !== undefined && previous?.epoch === on.epoch;
  // While the session is claimed, the latest known init is that of the previous holder.
  const initMs = phase.kind === "active" || phase.kind === "rebuilding" ? state.initMs : undefined;
  const lost = lossOf(state, previous, now);
  const deadlineAt = phase.kind === "opening" || phase.kind === "claimed" ? phase.deadlineAt : undefined;
  return {
    ...unknownFields(SessionRecordSchema, previous),
    v: 1,
    sessionId: state.sessionId,
    instanceId: InstanceId.parse(state.owner),
    type: state.type,
    phase: phase.kind,
    attachment: state.attachments,
    requires: { tags: options.requires.tags, resources: options.requires.resources },
    metadata: options.metadata,
    openedAt: state.openedAt,
    updatedAt: now,
    ...(on && { epoch: on.epoch, workerId: on.workerId, nodeId: on.nodeId, host: on.host }),
    ...(on && { resourceId: on.resourceId, claimedAt: sameHolder ? (previous.claimedAt ?? now) : now }),
    ...(deadlineAt !== undefined && { deadlineAt }),
    ...(initMs !== undefined && { initMs }),
    ...(state.inits !== undefined && { inits: state.inits }),
    ...(state.rebuilds !== undefined && { rebuilds: state.rebuilds }),
    ...(state.blobs && state.blobs.length > 0 && { blobs: state.blobs }),
    ...(lost && { lost }),
    ...(phase.kind === "failed" && { error: phase.error }),
    ...(phase.kind === "closed" && previous?.error && { error: previous.error }),
    ...(state.lending && { lentTo: state.lending.to.instanceId }),
    ...(options.leaseTtlMs !== undefined && { leaseTtlMs: options.leaseTtlMs }),
    ...(options.metadata[keyMetadataKey] !== undefined && { onLost: options.onLost }),
    owners: ownersAfter(previous?.owners ?? [], state, now),
  };
}

type WhichSession = Pick<SessionRecord, "instanceId" | "openedAt">;

/** Headers for the marker in place of an entry that was removed because its session has ended. */
export const overMark = ({ instanceId, openedAt }: WhichSession): Headers => ({
  [headerNames.over]: `${openedAt} ${instanceId}`,
});

/**
 * True if the marker stands for this session or a later one of its instance: an owner that was asleep must not
 * write the entry anew.
 */
export function isMarkedOver(marker: Headers, { instanceId, openedAt }: WhichSession): boolean {
  const [over, owner] = marker[headerNames.over]?.split(" ") ?? [];
  return owner === instanceId && Number(over) >= openedAt;
}

const Owned = wireObject({ instanceId: InstanceId });

/** Finds the instance in an entry that cannot be read as a whole; undefined if it is not there. */
export function ownerIn(entry: Uint8Array): InstanceId | undefined {
  const decoded = decode(Owned, entry);
  return decoded.kind === "ok" ? decoded.value.instanceId : undefined;
}

/** The latest loss. `lastLost` keeps it even if the same turn recorded the next request. */
function lossOf(
  { phase, lastLost }: SessionState,
  previous: SessionRecord | undefined,
  now: number,
): SessionRecord["lost"] {
  if (lastLost) {
    const { reason, detail, at } = lastLost;
    return { reason, ...(detail !== undefined && { detail }), at };
  }
  if (phase.kind !== "lost") return previous?.lost;
  const at = previous?.phase === "lost" ? (previous.lost?.at ?? now) : now;
  return { reason: phase.reason, ...(phase.detail !== undefined && { detail: phase.detail }), at };
}

function ownersAfter(owners: readonly Owner[], state: SessionState, now: number): Owner[] {
  const { phase, lastLost } = state;
  const on = holderIn(phase);
  const last = owners.at(-1);
  if (on && last?.epoch === on.epoch) return [...owners];
  const ended = owners.map((owner) =>
    owner.to !== undefined
      ? owner
      : lastLost?.epoch === owner.epoch
        ? { ...owner, to: lastLost.at, end: lastLost.reason }
        : { ...owner, to: now, end: endOf(phase) },
  );
  const joined = on ? [...ended, { workerId: on.workerId, epoch: on.epoch, from: now }] : ended;
  return joined.slice(-maxOwners);
}

function endOf(phase: SessionPhase): string {
  switch (phase.kind) {
    case "lost":
      return phase.reason;
    case "parked":
    case "failed":
    case "closed":
      return phase.kind;
    // The loss, parking or failed init in between was not written: the register only knows that another
    // worker was asked.
    case "opening":
    case "claimed":
    case "active":
    case "rebuilding":
      return "replaced";
  }
}
