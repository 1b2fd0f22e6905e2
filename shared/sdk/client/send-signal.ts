/** Sends a signal, and throws `instance_ended` if the instance had ended before the signal came. */
import { requireToken } from "../../bus/index.ts";
import { type AnySignal, validate } from "../../definitions/index.ts";
import { requireMessageId, type SignalOptions } from "../instance/message-id.ts";
import { ended } from "../user-facing.ts";
import type { HistoryReader } from "./history-reader.ts";
import type { InboxSender } from "./inbox-sender.ts";
import { type Instances, isTerminal } from "./instances.ts";

interface SignalParts {
  sender: InboxSender;
  instances: Instances;
  histories: HistoryReader;
}

export async function sendSignal(
  { sender, instances, histories }: SignalParts,
  instanceId: string,
  signal: AnySignal | string,
  payload: unknown,
  { messageId }: SignalOptions,
): Promise<void> {
  requireToken("instance id", instanceId);
  const name = requireToken("signal name", typeof signal === "string" ? signal : signal.name);
  if (typeof signal !== "string")
    validate(signal.payload, payload, "invalid_signal", `payload of signal "${name}"`);
  if (messageId !== undefined) requireMessageId(messageId);
  // Looked up while the signal is on its way: a signal takes one round trip.
  const [{ seq }, summary] = await Promise.all([
    sender.signal(instanceId, name, payload, messageId),
    instances.summary(instanceId).catch(() => undefined),
  ]);
  if (!summary || !isTerminal(summary.status)) return;
  if (!(await histories.received(instanceId, seq))) throw ended(instanceId, summary.status);
}
