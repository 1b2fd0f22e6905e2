/**
 * The options that apply to one session: its own, then its type's, then the worker's, in that order of
 * precedence.
 */
import type { SessionClaim } from "../../../schemas/index.ts";
import type { AnySession } from "../../../shared/definitions/index.ts";
import { parseDuration } from "../../../shared/runtime/index.ts";
import type { WorkerConfig } from "../config.ts";

export function leaseTtlOf(
  claim: SessionClaim,
  definition: AnySession | undefined,
  config: WorkerConfig,
): number {
  const ofType = definition?.options.leaseTtl;
  return (
    claim.leaseTtlMs ??
    (ofType === undefined ? config.sessions.leaseTtlMs : parseDuration(ofType, `leaseTtl of ${claim.type}`))
  );
}

export interface IdleRule {
  /** 0: never. */
  readonly ms: number;
  /**
   * True if neither the session nor its type asked for parking: it is parked only once the state is saved.
   */
  readonly lossless: boolean;
}

/** A session loses its state by idling only if the session or its type asked for that. */
export function idleRuleOf(
  claim: SessionClaim,
  definition: AnySession | undefined,
  config: WorkerConfig,
): IdleRule {
  const ofType = definition?.options.idleTimeout;
  if (claim.idleTimeoutMs !== undefined) return { ms: claim.idleTimeoutMs, lossless: false };
  if (ofType !== undefined)
    return { ms: parseDuration(ofType, `idleTimeout of ${claim.type}`), lossless: false };
  const saves = definition?.checkpoint !== undefined && definition.restore !== undefined;
  return { ms: saves ? config.sessions.idleTimeoutMs : 0, lossless: true };
}

/** The types with a quota over the whole installation. */
export function maxTotalsOf(
  types: readonly string[],
  definitions: ReadonlyMap<string, AnySession>,
): Map<string, number> {
  const totals = types.map((type) => [type, definitions.get(type)?.options.maxTotal] as const);
  return new Map(totals.flatMap(([type, max]) => (max === undefined ? [] : [[type, max]])));
}

/** The worker's own limit for the type takes precedence over the type's. */
export function maxPerWorkerOf(
  type: string,
  definition: AnySession | undefined,
  config: WorkerConfig,
): number {
  return config.sessions.maxPerType[type] ?? definition?.options.maxPerWorker ?? Number.POSITIVE_INFINITY;
}
