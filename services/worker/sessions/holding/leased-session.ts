import type { LeaseValue, SessionClaim } from "../../../../schemas/index.ts";
import { derivedCapability } from "../../../../shared/capabilities/index.ts";

/** The value of a session's lease, which a watcher needs to report its loss. All workers can read it. */
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
