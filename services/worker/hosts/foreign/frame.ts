import type { ToHostMessage } from "../../../../schemas/index.ts";
import { HoldfastError } from "../../../../shared/errors/index.ts";
import { writeJson } from "../../../../shared/runtime/index.ts";
import { extractBytes } from "./binary-parts.ts";

/** A message as it is written to a host: its line, then its bytes, which are not copied. */
export function frame(message: ToHostMessage, limitBytes: number): Uint8Array[] {
  const taken = extractBytes(message);
  const { attachments } = taken;
  const text = writeJson(attachments.length === 0 ? message : { ...taken.message, bytes: attachments });
  const line = Buffer.from(`${text}\n`);
  const size = taken.bytes.reduce((sum, { byteLength }) => sum + byteLength, line.length);
  if (size <= limitBytes) return [line, ...taken.bytes];
  throw new HoldfastError({
    code: "host_message_too_large",
    message: `${message.kind} is ${size} bytes long, and a message to a host may have ${limitBytes} (host.maxMessageMb)`,
  });
}
