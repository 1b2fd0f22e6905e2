/**
 * Ends an instance whose start is delayed: it begins and ends in one commit, and its code never runs. The commit
 * removes the schedule of the start; where that has fired in between, the start finds an instance that has ended.
 */
import { headerNames } from "../../../shared/bus/index.ts";
import type { InboxMessage, InstanceState } from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { parseInbox } from "../parse-inbox.ts";

type Start = Extract<InboxMessage, { kind: "start" }>;

/** Returns the message itself unless it is to end an instance whose start is delayed. */
export async function endingDelayed(
  deps: EngineDeps,
  { instanceId }: Readonly<InstanceState>,
  message: InboxMessage,
): Promise<InboxMessage> {
  if (message.kind !== "cancel" && message.kind !== "terminate") return message;
  const start = await delayedStart(deps, instanceId);
  if (!start) return message;
  const status = message.kind === "cancel" ? "cancelled" : "terminated";
  return { ...start, flow: undefined, delayed: true, over: { status, reason: message.reason } };
}

async function delayedStart(
  { bus, names, capabilities }: EngineDeps,
  instanceId: string,
): Promise<Start | undefined> {
  // A copy that lags would hide a start that was delayed, or fired, a moment ago.
  const last = (subject: string) => bus.last(names.timersStream, subject, { leader: true });
  const schedule = await last(names.delayedStart(instanceId));
  // One that has fired is on its way into the inbox.
  const fired = schedule ?? (await last(names.firedOf(instanceId)));
  if (!fired) return undefined;
  const target = schedule ? (schedule.headers[headerNames.scheduleTarget] ?? "") : fired.subject;
  const parsed = parseInbox(names, { ...fired, subject: names.inboxOfFired(target) }, capabilities);
  return parsed.kind === "message" && parsed.message.kind === "start" ? parsed.message : undefined;
}
