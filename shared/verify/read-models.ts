/** E2: the summary of an instance and the entries of its sessions agree with its history. */

import { isDeepStrictEqual } from "node:util";
import { type Payload, sessionPhases } from "../../schemas/index.ts";
import { isEnded } from "../replay/index.ts";
import type { Folded } from "./fold.ts";
import type { Installation } from "./installation.ts";
import type { OnViolation } from "./report.ts";

/** Returns `parked` from the summary, the only place that shows it. */
export async function checkReadModels(
  installation: Installation,
  { state, shownThrough, commits }: Folded,
  onViolation: OnViolation,
): Promise<{ parked: boolean }> {
  const found = await installation.summary(state.instanceId);
  if (found.kind === "unreadable") {
    onViolation("E2", `its summary cannot be read: ${found.why}`);
    return { parked: false };
  }
  if (found.kind === "none") {
    // An instance that was only signalled, or is a moment old, has no summary yet.
    if (shownThrough && commits > 0) onViolation("E2", "it has a history, but no summary");
    return { parked: false };
  }
  const summary = found.value;
  const parked = summary.status === "parked";
  const status = state.status === "absent" ? "pending" : state.status;
  if (shownThrough && isBehind(summary, shownThrough))
    onViolation(
      "E2",
      `its summary stands at execution ${summary.execution}, event ${summary.events}; the history showed execution ${shownThrough.execution}, event ${shownThrough.events}`,
    );
  else if (!parked && summary.status !== status)
    onViolation("E2", `its summary says ${summary.status}, its history ${status}`);
  else if (isEnded(state)) {
    if (differ(summary.output, state.output))
      onViolation("E2", "its summary has another output than its history");
    if (summary.error?.code !== state.error?.code)
      onViolation("E2", `its summary has the error ${summary.error?.code}, its history ${state.error?.code}`);
  }
  if (summary.name !== state.name)
    onViolation("E2", `its summary calls it ${summary.name}, its history ${state.name}`);
  await checkSessions(installation, state, onViolation);
  return { parked };
}

async function checkSessions(
  installation: Installation,
  state: Folded["state"],
  onViolation: OnViolation,
): Promise<void> {
  for (const session of state.sessions.values()) {
    if (session.owner !== state.instanceId) continue;
    const { sessionId, phase } = session;
    // The entry of an ended session is removed, and its id may belong to another instance by then.
    const isOver = sessionPhases[phase.kind].over;
    const found = await installation.session(sessionId);
    if (found.kind === "unreadable") {
      onViolation("E2", `the entry of session ${sessionId} cannot be read: ${found.why}`);
      continue;
    }
    if (found.kind === "none") {
      if (!isOver && !isEnded(state))
        onViolation("E2", `session ${sessionId} is ${phase.kind}, but has no entry`);
      continue;
    }
    const record = found.value;
    if (record.instanceId !== state.instanceId) {
      if (!isOver && !isEnded(state) && phase.kind !== "opening")
        onViolation(
          "E2",
          `session ${sessionId} is ${phase.kind} here, but its entry is of instance ${record.instanceId}`,
        );
      continue;
    }
    const epoch = "on" in phase ? phase.on?.epoch : undefined;
    const holds = sessionPhases[phase.kind].held;
    if (record.phase !== phase.kind || (holds && record.epoch !== epoch))
      onViolation(
        "E2",
        `the entry of session ${sessionId} says ${record.phase}${record.epoch ? `, epoch ${record.epoch}` : ""}; its history ${phase.kind}${epoch ? `, epoch ${epoch}` : ""}`,
      );
  }
}

const isBehind = (
  summary: { execution: number; events: number },
  shown: { execution: number; events: number },
): boolean =>
  summary.execution < shown.execution ||
  (summary.execution === shown.execution && summary.events < shown.events);

/**
 * A value that was moved to the object store only for the summary counts as equal. What a later version writes
 * beside a value is not looked at (E1).
 */
function differ(shown: Payload | undefined, stored: Payload | undefined): boolean {
  if (shown === undefined || stored === undefined) return shown !== stored;
  if ("blob" in shown) return false;
  return "blob" in stored || !isDeepStrictEqual(plain(shown.json), plain(stored.json));
}

/** The value as it is after JSON: without undefined fields. */
const plain = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value));
