/**
 * Copies the large values of an incoming message into the instance's own storage before the message is
 * recorded, because the sender's copies may be deleted first. Instances send each other values that already
 * belong to the receiver (publishing/effects.ts); other senders may not.
 */
import type { Payload } from "../../../schemas/index.ts";
import type { Payloads } from "../../../shared/bus/index.ts";
import type { InboxMessage } from "../../../shared/replay/index.ts";
import type { Mail } from "../mail.ts";

type Adopting = Pick<Payloads, "adopt">;

function carriesBlob(message: InboxMessage): boolean {
  const payload = carriedBy(message);
  return payload !== undefined && "blob" in payload;
}

/** Returns the same message if it carries no large value that belongs to another instance. */
async function adoptPayloads(
  payloads: Adopting,
  instanceId: string,
  message: InboxMessage,
): Promise<InboxMessage> {
  const payload = carriedBy(message);
  if (payload === undefined || "json" in payload) return message;
  const own = await payloads.adopt(payload, instanceId);
  return own === payload ? message : withPayload(message, own);
}

/** The value of the message that the instance's code will see. */
function carriedBy(message: InboxMessage): Payload | undefined {
  switch (message.kind) {
    case "start":
      return message.input;
    case "signal":
    case "update":
      return message.payload;
    case "activity":
    case "child": {
      const { result } = message.report;
      return result.kind === "completed" ? result.output : undefined;
    }
    case "cancel":
    case "terminate":
    case "session":
    case "wake":
      return undefined;
  }
}

function withPayload(message: InboxMessage, payload: Payload): InboxMessage {
  switch (message.kind) {
    case "start":
      return { ...message, input: payload };
    case "signal":
    case "update":
      return { ...message, payload };
    case "activity":
      return { ...message, report: { ...message.report, result: { kind: "completed", output: payload } } };
    case "child":
      return { ...message, report: { ...message.report, result: { kind: "completed", output: payload } } };
    default:
      return message;
  }
}

/** Runs before the turn decides anything: if a value cannot be copied now, the whole turn is tried again. */
export async function adoptAll(
  payloads: Payloads,
  instanceId: string,
  batch: readonly Mail[],
): Promise<readonly Mail[]> {
  if (!batch.some(({ message }) => carriesBlob(message))) return batch;
  return Promise.all(
    batch.map(async (mail) => {
      const message = await adoptPayloads(payloads, instanceId, mail.message);
      return message === mail.message ? mail : { ...mail, message };
    }),
  );
}
