/**
 * Quotas over the whole installation, in sentences for people. Pure: takes the workers' entries, returns
 * sentences. The seats in the lease bucket decide whether a session may be taken, never these figures, which
 * may lag.
 */
import type { WorkerInfo } from "../../schemas/index.ts";
import { type Placement, type PlacementClaim, place } from "./placement.ts";

interface QuotaUse {
  used: number;
  max: number;
}

/** `type` undefined: the quota over all sessions. */
export const quotaSentence = (type: string | undefined, { used, max }: QuotaUse): string =>
  type === undefined
    ? `all types together are at ${used} of ${max} in the whole installation (WORKER_MAX_TOTAL_SESSIONS)`
    : `type ${type} is at ${used} of ${max} in the whole installation (maxTotal)`;

/**
 * As `place`, to explain why a session waits: a worker that fits may not take it while a quota is reached.
 */
export function placeWithinQuotas(workers: readonly WorkerInfo[], claim: PlacementClaim): Placement {
  const placed = place(workers, claim);
  if (placed.kind === "none" && placed.why !== "at_capacity") return placed;
  const reached = quotaReached(workers, claim.type);
  if (reached === undefined) return placed;
  const message = placed.kind === "none" ? `${reached}; ${placed.message}` : reached;
  return { kind: "none", why: "at_quota", message };
}

/** According to the worker that registered last. */
function quotaReached(workers: readonly WorkerInfo[], type: PlacementClaim["type"]): string | undefined {
  const latest = workers
    .filter((worker) => worker.quotas && worker.sessionTypes.includes(type))
    .sort((a, b) => b.seenAt - a.seenAt)[0]?.quotas;
  const ofType = latest?.types[type];
  if (ofType && ofType.used >= ofType.max) return quotaSentence(type, ofType);
  const all = latest?.all;
  return all && all.used >= all.max ? quotaSentence(undefined, all) : undefined;
}
