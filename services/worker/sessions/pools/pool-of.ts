import {
  poolMetadataKey,
  type SessionClaim,
  sharingMetadataKey,
  tokenPattern,
} from "../../../../schemas/index.ts";

/** The pool a session is a member of. */
export function poolOf({ metadata }: Pick<SessionClaim, "metadata">): string | undefined {
  const poolId = metadata[poolMetadataKey];
  return poolId !== undefined && tokenPattern.test(poolId) ? poolId : undefined;
}

/**
 * The pool whose shared queue the session takes calls from. A lent member gets its calls from its borrower
 * instead.
 */
export function sharedPoolOf(claim: Pick<SessionClaim, "metadata">): string | undefined {
  return claim.metadata[sharingMetadataKey] === "exclusive" ? undefined : poolOf(claim);
}
