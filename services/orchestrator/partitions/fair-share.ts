/** Decides how many partitions an orchestrator should hold. Pure. */

interface ShareView {
  partitions: number;
  /** Live orchestrators, this one included. */
  orchestrators: number;
  /** Partitions that this orchestrator holds. */
  held: readonly number[];
  /** Partitions without a holder, as far as this orchestrator knows. */
  free: readonly number[];
}

interface ShareDecision {
  claim: number[];
  release: number[];
}

/** No orchestrator holds more than the rounded-up share; each claims free partitions up to that share. */
export function fairShare({ partitions, orchestrators, held, free }: ShareView): ShareDecision {
  const most = Math.ceil(partitions / Math.max(1, orchestrators));
  if (held.length > most) return { claim: [], release: held.slice(most) };
  return { claim: free.slice(0, most - held.length), release: [] };
}
