/** Checks if a message has the capability that it needs (C1). */
import type { ActivityReport, SessionReport } from "../../schemas/index.ts";
import type { Capabilities, Doubt, SessionAddress } from "./capabilities.ts";

/**
 * True if the report says that a run sent no heartbeat. The watcher sends it, with the capability it finds in the
 * heartbeat entry of that run.
 */
function isHeartbeatTimeout({ result }: ActivityReport): boolean {
  if (result.kind !== "failed" || result.error.code !== "timeout") return false;
  const { details } = result.error;
  return (
    typeof details === "object" && details !== null && "timeout" in details && details.timeout === "heartbeat"
  );
}

/** Undefined if the report is to be believed. */
export function doubtReport(
  capabilities: Capabilities,
  instanceId: string,
  report: ActivityReport,
): Doubt | undefined {
  const task = { ...report, instanceId };
  const doubt = capabilities.doubtTask(task, report.capability);
  if (doubt !== "wrong" || !isHeartbeatTimeout(report)) return doubt;
  return capabilities.doubtTask(task, report.capability, "beat");
}

/**
 * Returns the address that the capability of a session's report must be made for. A report that only the engine may
 * send has the address `engine.<instance>`: no instance id has a dot, so no claim contains its capability.
 */
export function capabilityAddress(
  instanceId: string,
  { sessionId, attachment, owner, report }: About,
): SessionAddress {
  const isOfEngine = owner !== undefined || reportsOfEngine.has(report.kind);
  return { instanceId: isOfEngine ? `engine.${instanceId}` : instanceId, sessionId, attachment };
}

interface About {
  sessionId: string;
  attachment: number;
  owner?: string | undefined;
  report: { kind: string };
}

const reportsOfEngine: ReadonlySet<string> = new Set<SessionReport["report"]["kind"]>([
  "wanted",
  "closed",
  "lent",
  "spent",
]);

/** Undefined if the report is to be believed. */
export function doubtSessionReport(
  capabilities: Capabilities,
  instanceId: string,
  report: SessionReport,
): Doubt | undefined {
  const session = capabilityAddress(instanceId, report);
  const doubt = capabilities.doubtSession(session, report.capability);
  if (doubt !== "wrong" || report.report.kind !== "lost") return doubt;
  return capabilities.doubtSession(session, report.capability, "lost");
}
