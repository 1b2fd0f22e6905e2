/**
 * Reports the loss of a session whose lease this process has removed: the process that removes a lease reports
 * its loss. If the report is not stored, the watcher finds the loss: no lease, and no report.
 */
import type { LossReason } from "../../schemas/index.ts";
import { type Bus, publishAnew, subjects } from "../bus/index.ts";
import { systemRandom } from "../runtime/index.ts";

/** Names the session, and the instance to which the loss is reported. */
export interface SessionAddress {
  readonly instanceId: string;
  readonly sessionId: string;
  readonly attachment: number;
  readonly lossCapability?: string | undefined;
}

interface LostLease {
  /** Undefined: only the attachment names the holder. Attachments are claimed once, so that is exact too. */
  epoch?: number;
  reason: Extract<LossReason, "hung" | "crashed">;
  detail: string;
}

/** Written by hand: the thread that renews leases should not load a schema library. */
export async function reportLost(
  bus: Bus,
  prefix: string,
  { instanceId, sessionId, attachment, lossCapability: capability }: SessionAddress,
  lost: LostLease,
): Promise<void> {
  const report = { v: 1, sessionId, attachment, report: { kind: "lost", ...lost }, capability };
  const body = new TextEncoder().encode(JSON.stringify(report));
  await publishAnew(bus, systemRandom, subjects(prefix).verb(instanceId, "session"), body, {
    msgId: `lost-${sessionId}-${attachment}`,
  });
}
