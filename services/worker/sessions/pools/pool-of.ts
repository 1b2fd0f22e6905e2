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

/** The pool whose calls it takes. A member that is lent gets them from its borrower. */
export function sharedPoolOf(claim: Pick<SessionClaim, "metadata">): string | undefined {
  return claim.metadata[sharingMetadataKey] === "exclusive" ? undefined : poolOf(claim);
}
