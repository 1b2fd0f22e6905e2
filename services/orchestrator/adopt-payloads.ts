/** Large values of a message become the instance's own before they are recorded: their sender may be forgotten first. */
import type { Payload } from "../../schemas/index.ts";
import type { Payloads } from "../../shared/bus/index.ts";
import type { InboxMessage } from "../../shared/replay/index.ts";

type Adopting = Pick<Payloads, "adopt">;

export function carriesBlob(message: InboxMessage): boolean {
  const payload = carriedBy(message);
  return payload !== undefined && "blob" in payload;
}

/** Returns the message itself where it carries no large value of somebody else's. */
export async function adoptPayloads(
  payloads: Adopting,
  instanceId: string,
  message: InboxMessage,
): Promise<InboxMessage> {
  const payload = carriedBy(message);
  if (payload === undefined || "json" in payload) return message;
  const own = await payloads.adopt(payload, instanceId);
  return own === payload ? message : withPayload(message, own);
}

/** The value that the code of the instance will see. */
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
