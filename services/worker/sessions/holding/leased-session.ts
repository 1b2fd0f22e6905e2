import type { LeaseValue, SessionClaim } from "../../../../schemas/index.ts";
import { derivedCapability } from "../../../../shared/capabilities/index.ts";

/** What the lease of a session says of it, for whoever has to report its loss. All workers can read it. */
export const leasedSession = ({
  instanceId,
  sessionId,
  attachment,
  capability,
}: SessionClaim): NonNullable<LeaseValue["session"]> => ({
  instanceId,
  sessionId,
  attachment,
  ...(capability !== undefined && { lossCapability: derivedCapability(capability, "lost") }),
});
