/**
 * Publishes until the server has stored the message: an effect of a committed turn must be published (T2).
 */
import { type Bus, encode, type PublishOptions, publishUntilStored } from "../../../shared/bus/index.ts";
import type { Capabilities } from "../../../shared/capabilities/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Runtime } from "../../../shared/runtime/index.ts";

export interface Outbox {
  bus: Bus;
  runtime: Runtime;
  capabilities: Pick<Capabilities, "ofMessageId">;
  /** Aborts when the partition is lost: the next owner publishes the effect again. */
  signal: AbortSignal;
}

const empty = new Uint8Array(0);
const backoff = { initialMs: 100, maxMs: 2_000, factor: 2 };

/** Clients and workers may publish to inboxes, and with any message id (SEC-2). */
const toInbox = /(^|\.)orchestrations\./;

/**
 * Returns the sequence, or undefined if the signal is aborted first. `msgId` makes every repetition harmless.
 */
export async function publishEffect(
  { bus, runtime, capabilities, signal }: Outbox,
  subject: string,
  value: unknown,
  options: PublishOptions & { msgId: string },
): Promise<number | undefined> {
  const body = value instanceof Uint8Array ? value : value === undefined ? empty : encode(value);
  const onFault = (error: unknown) => {
    if (!isFault(error, "transient")) throw error;
    runtime.announce({ kind: "fault", where: "effects", code: error.code, message: error.message });
  };
  const until = { bus, runtime, backoff, mayTry: () => !signal.aborted, signal, onFault };
  const msgId = toInbox.test(subject) ? capabilities.ofMessageId(options.msgId) : options.msgId;
  return (await publishUntilStored(until, subject, body, { ...options, msgId }))?.seq;
}
