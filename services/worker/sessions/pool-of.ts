import { poolMetadataKey, type SessionClaim, tokenPattern } from "../../../schemas/index.ts";

/** The pool a session is a member of. */
export function poolOf({ metadata }: Pick<SessionClaim, "metadata">): string | undefined {
  const poolId = metadata[poolMetadataKey];
  return poolId !== undefined && tokenPattern.test(poolId) ? poolId : undefined;
}
