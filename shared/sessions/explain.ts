/** Why a session is where it is, in sentences for people. Pure: the register, the workers and the lease in, text out. */
import type { SessionRecord, WorkerInfo } from "../../schemas/index.ts";
import type { Look } from "../leases/index.ts";
import type { PlacementClaim } from "./placement.ts";
import { placeWithinQuotas } from "./quota.ts";
import { shortEpoch } from "./short-epoch.ts";

export function explain(
  record: SessionRecord,
  workers: readonly WorkerInfo[],
  lease: Look | undefined,
  now: number,
): string[] {
  switch (record.phase) {
    case "opening":
      return [waiting(record, now), ...whyWaiting(record, workers), ...lastLoss(record, workers, now)];
    case "claimed":
      return [`claimed by ${held(record, now)}, init is running`, ...holding(record, workers, lease, now)];
    case "active":
      return [`held by ${held(record, now)}`, ...holding(record, workers, lease, now)];
    case "rebuilding":
      return [
        `held by ${held(record, now)}, its rebuild is running`,
        ...holding(record, workers, lease, now),
      ];
    case "parked":
      return [
        record.attachment === 0
          ? "lazy: nobody was asked to hold it yet, the first call does"
          : "idle: its state was put away, nobody holds it, the next call claims it anew",
      ];
    case "lost":
      return lastLoss(record, workers, now);
    case "failed":
      return [
        `failed ${ago(record.updatedAt, now)}: ${record.error?.message ?? "no reason was recorded"}`,
        ...lastLoss(record, workers, now),
      ];
    case "closed":
      return [
        `closed ${ago(record.updatedAt, now)} by its instance ${record.instanceId}`,
        ...(record.error ? [`had failed: ${record.error.message}`] : []),
        ...lastLoss(record, workers, now),
      ];
  }
}

function waiting(record: SessionRecord, now: number): string {
  const left = record.deadlineAt === undefined ? undefined : record.deadlineAt - now;
  const end =
    left === undefined
      ? ""
      : left > 0
        ? `, gives up in ${span(left)}`
        : `, its time was over ${span(-left)} ago`;
  return `waits for a worker since ${span(now - record.updatedAt)} (attachment ${record.attachment})${end}`;
}

/** The register does not say which build or resource a claim asks for, so a chosen worker is a "could". */
function whyWaiting(record: SessionRecord, workers: readonly WorkerInfo[]): string[] {
  const { sessionId, type, requires } = record;
  const claim: PlacementClaim = {
    sessionId,
    type,
    requires,
    buildId: undefined,
    resourceId: undefined,
    affinityKey: "",
  };
  const placement = placeWithinQuotas(workers, claim);
  return placement.kind === "none"
    ? [placement.message]
    : [`worker ${placement.workerId} could take it (${placement.why})`];
}

function held(record: SessionRecord, now: number): string {
  const since = record.claimedAt === undefined ? "" : ` since ${span(now - record.claimedAt)}`;
  return `${record.workerId ?? "nobody known"} (epoch ${record.epoch === undefined ? "unknown" : shortEpoch(record.epoch)})${since}`;
}

function holding(
  record: SessionRecord,
  workers: readonly WorkerInfo[],
  lease: Look | undefined,
  now: number,
): string[] {
  const worker = workers.find(({ workerId }) => workerId === record.workerId);
  const owner = worker ? load(worker, record.type) : "worker gone";
  if (lease === undefined) return [owner];
  switch (lease.kind) {
    case "held":
      return [`lease renewed ${ago(lease.at, now)}, ${owner}`];
    case "expired":
      return [`lease expired ${ago(lease.at, now)}, ${owner}`, "its instance is told by the watcher"];
    case "released":
      return [`lease given back ${ago(lease.at, now)}, ${owner}`];
    case "none":
      return [`no lease, ${owner}`];
  }
}

function load(worker: WorkerInfo, type: string): string {
  const { sessions } = worker.slots;
  const perType = worker.perType[type];
  const ofType =
    perType && perType.max < sessions.max ? ` (${perType.used} of ${perType.max} of its type)` : "";
  const draining = worker.draining ? ", draining" : "";
  return `owner ${worker.workerId} at ${sessions.used} of ${sessions.max}${ofType}${draining}`;
}

function lastLoss(record: SessionRecord, workers: readonly WorkerInfo[], now: number): string[] {
  const { lost } = record;
  if (!lost) return [];
  const owner = record.owners.at(-1);
  const gone = owner && !workers.some(({ workerId }) => workerId === owner.workerId);
  const who = owner ? ` by ${owner.workerId}${gone ? ", worker gone" : ""}` : "";
  const detail = lost.detail === undefined ? "" : `: ${lost.detail}`;
  return [`lost ${ago(lost.at, now)}${who} (${lost.reason}${detail})`];
}

const ago = (at: number, now: number): string => `${span(now - at)} ago`;

/** Clocks of several machines meet here: a little before now is now. */
function span(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}
