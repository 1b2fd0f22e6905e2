/**
 * Explains the state of a session in sentences for people. Pure: takes the register, the workers and the
 * lease, returns text.
 */
import type { SessionRecord, WorkerInfo } from "../../schemas/index.ts";
import type { LeaseKeyState } from "../leases/index.ts";
import { shortEpoch } from "../wording/index.ts";
import type { PlacementClaim } from "./placement.ts";
import { placeWithinQuotas } from "./quota.ts";

export function explain(
  record: SessionRecord,
  workers: readonly WorkerInfo[],
  lease: LeaseKeyState | undefined,
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
          ? "lazy: no worker was asked to hold it yet, the first call asks one"
          : "idle: its holder parked it, no worker holds it, the next call has it claimed again",
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
        : `, its time ran out ${span(-left)} ago`;
  return `has waited for a worker for ${span(now - record.updatedAt)} (attachment ${record.attachment})${end}`;
}

/**
 * The register does not hold the build or resource that a claim asks for, so the text says that a worker
 * "could" take it.
 */
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
  const since = record.claimedAt === undefined ? "" : ` for ${span(now - record.claimedAt)}`;
  return `${record.workerId ?? "an unknown worker"} (epoch ${record.epoch === undefined ? "unknown" : shortEpoch(record.epoch)})${since}`;
}

function holding(
  record: SessionRecord,
  workers: readonly WorkerInfo[],
  lease: LeaseKeyState | undefined,
  now: number,
): string[] {
  const worker = workers.find(({ workerId }) => workerId === record.workerId);
  const owner = worker ? load(worker, record.type) : "its worker is gone";
  if (lease === undefined) return [owner];
  switch (lease.kind) {
    case "held":
      return [
        `lease renewed ${ago(lease.at, now)}, ${owner}`,
        ...(worker ? sharing(record, worker, now) : []),
      ];
    case "expired":
      return [
        `lease expired ${ago(lease.at, now)}, ${owner}`,
        "the watcher reports the loss to its instance",
      ];
    case "released":
      return [`lease given back ${ago(lease.at, now)}, ${owner}`];
    case "none":
      return [`no lease, ${owner}`];
  }
}

/** Sessions of one host share its thread: a call that blocks the thread blocks all of them. */
function sharing({ sessionId, epoch }: SessionRecord, { sessions }: WorkerInfo, now: number): string[] {
  const host = sessions.find((one) => one.sessionId === sessionId && one.epoch === epoch)?.host;
  if (!host) return [];
  const there = sessions.filter((one) => one.host?.id === host.id);
  const others = there.filter((one) => one.sessionId !== sessionId);
  if (host.silentSince === undefined) {
    if (others.length === 0) return [];
    return [`shares host ${host.id} with ${names(others)}: while a call of one of them blocks, it waits`];
  }
  const running = there.filter((one) => one.running > 0);
  const by = running.length === 0 ? "" : `, which runs calls of ${names(running)}`;
  return [
    `host ${host.id}${by}, has not answered for ${span(now - host.silentSince)}: code there blocks, and ${
      others.length === 0 ? "the session waits" : `all its ${there.length} sessions wait`
    }`,
    ...(others.length === 0 ? [] : ["`host: { sessionsPerHost: 1 }` gives each session of the type its own"]),
  ];
}

const names = (sessions: readonly { sessionId: string }[]): string =>
  sessions.map(({ sessionId }) => sessionId).join(", ");

function load(worker: WorkerInfo, type: string): string {
  const { sessions } = worker.slots;
  const perType = worker.perType[type];
  const ofType =
    perType && perType.max < sessions.max ? ` (${perType.used} of ${perType.max} of its type)` : "";
  const draining = worker.draining ? ", draining" : "";
  return `its worker holds ${sessions.used} of at most ${sessions.max} sessions${ofType}${draining}`;
}

function lastLoss(record: SessionRecord, workers: readonly WorkerInfo[], now: number): string[] {
  const { lost } = record;
  if (!lost) return [];
  // Others may have held it since.
  const owner = record.owners.findLast(
    ({ to, end }) => to !== undefined && (end === undefined || end === lost.reason),
  );
  const gone = owner && !workers.some(({ workerId }) => workerId === owner.workerId);
  const by = owner ? ` by ${owner.workerId}${gone ? ", worker gone" : ""}` : "";
  const detail = lost.detail === undefined ? "" : `: ${lost.detail}`;
  return [`lost ${ago(lost.at, now)}${by} (${lost.reason}${detail})`];
}

const ago = (at: number, now: number): string => `${span(now - at)} ago`;

/** The clocks of several machines differ: a small negative time counts as now. */
function span(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}
