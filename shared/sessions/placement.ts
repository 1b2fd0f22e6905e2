/**
 * Chooses the worker for a session (S12): type and build id → tags → resources → room → warmth → spread →
 * load. Pure: takes a view of the workers, returns a worker or the reason why none fits. Everything before
 * warmth is a filter, so no preference can skip a requirement.
 */

import { poolMetadataKey, type SessionClaim, type WorkerInfo } from "../../schemas/index.ts";
import { hash32 } from "../runtime/index.ts";
import { count } from "../wording/index.ts";
import { isOnResource } from "./resource.ts";

export type PlacementClaim = Pick<
  SessionClaim,
  "sessionId" | "type" | "requires" | "buildId" | "resourceId" | "affinityKey"
> & {
  metadata?: SessionClaim["metadata"];
  parkedBy?: SessionClaim["parkedBy"];
  affinity?: SessionClaim["affinity"];
};

type NoPlace =
  | "no_type"
  | "no_build"
  | "no_tags"
  | "no_resources"
  | "resource_gone"
  | "at_capacity"
  /** Returned by `placeWithinQuotas` only. */
  | "at_quota";

export type Placement =
  | { kind: "chosen"; workerId: string; why: "warm" | "least loaded" | "only one" }
  | { kind: "none"; why: NoPlace; message: string };

interface PlacementOptions {
  /** Workers that must not be asked again, for example because they just refused. */
  except?: ReadonlySet<string>;
}

type Step = { kind: "left"; workers: WorkerInfo[] } | { kind: "none"; why: NoPlace; message: string };

export function place(
  workers: readonly WorkerInfo[],
  claim: PlacementClaim,
  options: PlacementOptions = {},
): Placement {
  const asked = workers.filter((worker) => !options.except?.has(worker.workerId));
  const able = capable(asked, claim);
  if (able.kind === "none") return able;
  const free = able.workers.filter((worker) => hasRoom(worker, claim.type));
  if (free.length === 0)
    return { kind: "none", why: "at_capacity", message: fullMessage(able.workers, claim) };
  const attracts = attraction(free, claim);
  const [best] = free.sort((a, b) => compare(a, b, claim, attracts));
  if (!best) throw new Error("unreachable: free is not empty");
  const why =
    free.length === 1 ? "only one" : attracts(best) || wasHere(best, claim) ? "warm" : "least loaded";
  return { kind: "chosen", workerId: best.workerId, why };
}

/** The workers that meet every requirement, with or without room: a waiting session waits for these. */
export function capable(workers: readonly WorkerInfo[], claim: PlacementClaim): Step {
  const { type, requires } = claim;
  let left = [...workers];
  const narrow = (why: NoPlace, keep: (worker: WorkerInfo) => boolean, message: () => string) => {
    const kept = left.filter(keep);
    if (kept.length === 0) return { kind: "none" as const, why, message: message() };
    left = kept;
    return undefined;
  };
  // Checked first, so that the reason is about the one resource that fits and not about other workers' tags.
  const { resourceId } = claim;
  if (resourceId !== undefined) {
    const gone = narrow(
      "resource_gone",
      (worker) => isOnResource(worker, resourceId),
      () => `resource ${resourceId} has left: none of ${count(workers.length, "worker")} is on it`,
    );
    if (gone) return gone;
  }
  return (
    narrow(
      "no_type",
      (worker) => worker.sessionTypes.includes(type),
      () => (workers.length === 0 ? "no worker is running" : `no worker serves session type ${type}`),
    ) ??
    narrow(
      "no_build",
      (worker) => claim.buildId === undefined || worker.buildId === claim.buildId,
      () => `no worker for type ${type} runs build ${claim.buildId}`,
    ) ??
    narrow(
      "no_tags",
      (worker) => requires.tags.every((tag) => worker.tags.includes(tag)),
      () => tagMessage(left, requires.tags),
    ) ??
    narrow(
      "no_resources",
      (worker) => Object.entries(requires.resources).every(([name, need]) => freeOf(worker, name) >= need),
      () => resourceMessage(left, requires.resources),
    ) ?? { kind: "left", workers: left }
  );
}

/** S10: counts owned sessions; a draining worker takes no new ones (S13). */
export function hasRoom(worker: WorkerInfo, type: string): boolean {
  const perType = worker.perType[type];
  return (
    !worker.draining &&
    worker.slots.sessions.used < worker.slots.sessions.max &&
    (perType === undefined || perType.used < perType.max)
  );
}

/**
 * True if the worker that already has the claim may keep it instead of passing it to the best one. Passing
 * costs a round trip, so a difference of one session (`slack`) is not worth it; a warm worker instead of a
 * cold one is.
 */
export function nearEnough(self: WorkerInfo, best: WorkerInfo, claim: PlacementClaim, slack = 1): boolean {
  if (self.workerId === best.workerId) return true;
  const able = capable([self], claim);
  if (able.kind === "none" || !hasRoom(self, claim.type)) return false;
  if (wasHere(best, claim)) return false;
  const attracts = attraction([self, best], claim);
  if (attracts(best) && !attracts(self)) return false;
  if (members(self, claim) > members(best, claim)) return false;
  return self.slots.sessions.used <= best.slots.sessions.used + Math.max(1, slack);
}

/** This worker parked the session: data that it loaded for it may still be in memory. */
const wasHere = ({ workerId }: WorkerInfo, { parkedBy }: PlacementClaim): boolean => workerId === parkedBy;

/**
 * How many sessions more than the least loaded worker a worker may hold before a derived key stops attracting
 * sessions to it.
 */
const overloadSessions = 2;
const overloadDelayMs = 100;

/**
 * Which workers are warm for the session and attract it for that. A key that the user chose attracts while
 * there is room. The key derived from type and config is the same for every session of a plain type: it
 * attracts only while its worker is not overloaded, or the first worker would fill up while the others stand
 * idle.
 */
function attraction(workers: readonly WorkerInfo[], claim: PlacementClaim): (worker: WorkerInfo) => boolean {
  const isWarm = ({ warm }: WorkerInfo) => warm.includes(claim.affinityKey);
  if (claim.affinity === "chosen") return isWarm;
  const leastShare = Math.min(...workers.map(share));
  const leastDelayMs = Math.min(...workers.map(({ eventLoopDelayMs }) => eventLoopDelayMs));
  const isOverloaded = (worker: WorkerInfo) =>
    share(worker) > leastShare + overloadSessions / Math.max(1, worker.slots.sessions.max) ||
    worker.eventLoopDelayMs > leastDelayMs + overloadDelayMs;
  return (worker) => isWarm(worker) && !isOverloaded(worker);
}

/** Members of the claim's pool that are already on the worker: a pool is spread over workers. */
const members = (worker: WorkerInfo, { metadata }: PlacementClaim): number =>
  worker.pools?.[metadata?.[poolMetadataKey] ?? ""] ?? 0;

const freeOf = (worker: WorkerInfo, name: string): number =>
  (worker.resources.total[name] ?? 0) - (worker.resources.used[name] ?? 0);

/** Smaller differences of delay are noise, not load. */
const delayStepMs = 10;

function compare(
  a: WorkerInfo,
  b: WorkerInfo,
  claim: PlacementClaim,
  attracts: (worker: WorkerInfo) => boolean,
): number {
  return (
    Number(wasHere(b, claim)) - Number(wasHere(a, claim)) ||
    Number(attracts(b)) - Number(attracts(a)) ||
    members(a, claim) - members(b, claim) ||
    share(a) - share(b) ||
    Math.floor(a.eventLoopDelayMs / delayStepMs) - Math.floor(b.eventLoopDelayMs / delayStepMs) ||
    // All workers break a tie alike, and the ties of many sessions fall on many workers.
    rank(a, claim) - rank(b, claim) ||
    (a.workerId < b.workerId ? -1 : 1)
  );
}

const share = ({ slots: { sessions } }: WorkerInfo): number =>
  sessions.max === 0 ? 1 : sessions.used / sessions.max;

const rank = (worker: WorkerInfo, claim: PlacementClaim): number =>
  hash32(`${claim.sessionId}/${worker.workerId}`);

function tagMessage(workers: readonly WorkerInfo[], tags: readonly string[]): string {
  const missing = tags.filter((tag) => !workers.some((worker) => worker.tags.includes(tag)));
  if (missing.length > 0) {
    return `no worker with tag ${missing.join(", ")} among ${count(workers.length, "worker")} for the type`;
  }
  return `no worker has all the tags ${tags.join(", ")} together`;
}

function resourceMessage(workers: readonly WorkerInfo[], needs: Readonly<Record<string, number>>): string {
  for (const [name, need] of Object.entries(needs)) {
    const best = Math.max(...workers.map((worker) => freeOf(worker, name)));
    if (best >= need) continue;
    const most = Math.max(...workers.map((worker) => worker.resources.total[name] ?? 0));
    return most >= need
      ? `no worker has ${need} ${name} free (${best} of ${most} at most)`
      : `no worker has ${need} ${name} (${most} at most)`;
  }
  const list = Object.entries(needs).map(([name, need]) => `${need} ${name}`);
  return `no worker has ${list.join(", ")} free together`;
}

function fullMessage(workers: readonly WorkerInfo[], { type }: PlacementClaim): string {
  let used = 0;
  let max = 0;
  for (const worker of workers) {
    const { sessions } = worker.slots;
    const perType = worker.perType[type];
    const binding = perType && sessions.used < sessions.max ? perType : sessions;
    used += binding.used;
    max += binding.max;
  }
  const draining = workers.filter((worker) => worker.draining).length;
  const note = draining > 0 ? `, ${draining} draining` : "";
  const full = workers.length === 1 ? `worker ${workers[0]?.workerId}` : `all ${workers.length} workers`;
  return `${full} for type ${type} at capacity (${used} of ${max}${note})`;
}
