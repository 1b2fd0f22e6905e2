/** How many partitions an orchestrator should hold. Pure. */

export interface ShareView {
  partitions: number;
  /** Orchestrators alive, this one included. */
  orchestrators: number;
  /** Partitions this one holds. */
  held: readonly number[];
  /** Partitions nobody holds, as far as is known. */
  free: readonly number[];
}

export interface ShareDecision {
  claim: number[];
  release: number[];
}

/** Nobody holds more than the rounded-up share; what is free is taken up to it. */
export function fairShare({ partitions, orchestrators, held, free }: ShareView): ShareDecision {
  const most = Math.ceil(partitions / Math.max(1, orchestrators));
  if (held.length > most) return { claim: [], release: held.slice(most) };
  return { claim: free.slice(0, most - held.length), release: [] };
}
