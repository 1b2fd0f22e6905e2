/** Whether a message shows the capability that it needs (C1). */
import type { ActivityReport, SessionReport } from "../../schemas/index.ts";
import type { Capabilities, Doubt, SessionAddress } from "./capabilities.ts";

/** The report that a run sent no heartbeat, which the watcher sends with what it finds in the key of that run. */
export function isSilence({ result }: ActivityReport): boolean {
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
  if (doubt !== "wrong" || !isSilence(report)) return doubt;
  return capabilities.doubtTask(task, report.capability, "beat");
}

/**
 * What the capability of a report about a session is over. What the engine alone may say has capabilities of its own,
 * which no claim contains: no instance id has a dot.
 */
export function shownWith(
  instanceId: string,
  { sessionId, attachment, owner, report }: About,
): SessionAddress {
  const isOfEngine = owner !== undefined || saidByEngine.has(report.kind);
  return { instanceId: isOfEngine ? `engine.${instanceId}` : instanceId, sessionId, attachment };
}

interface About {
  sessionId: string;
  attachment: number;
  owner?: string | undefined;
  report: { kind: string };
}

const saidByEngine: ReadonlySet<string> = new Set<SessionReport["report"]["kind"]>([
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
  const session = shownWith(instanceId, report);
  const doubt = capabilities.doubtSession(session, report.capability);
  if (doubt !== "wrong" || report.report.kind !== "lost") return doubt;
  return capabilities.doubtSession(session, report.capability, "lost");
}
