/**
 * SEC-2 A message id is no proof: a client that may write to any subject of a stream can use up the id of
 *    another sender's message, and the server then drops that message as a duplicate. A sender whose ids can
 *    be guessed therefore does not believe a duplicate answer before it has seen its message: it publishes
 *    once more under an id that no other client can know. The receiver drops messages it has seen before
 *    (T5). Orchestrators make the ids of their messages with their key, so that nobody else can guess them.
 */
import { type Random, token } from "../../runtime/index.ts";
import type { Bus, PublishOptions, PublishOutcome } from "../bus.ts";
import type { Subjects } from "../subjects.ts";

/** Where to look for the message that the server calls a duplicate. */
export interface Original {
  stream: string;
  filter: string;
}

export const inInbox = (names: Subjects, instanceId: string): Original => ({
  stream: names.inboxStream,
  filter: names.inboxOf(instanceId),
});

/**
 * False also if the message was consumed meanwhile or this user may not read the stream: publishing it twice
 * is harmless.
 */
async function isThere(bus: Pick<Bus, "read">, original: Original, seq: number): Promise<boolean> {
  try {
    return (await bus.read(original.stream, original.filter, seq, 1))?.[0]?.seq === seq;
  } catch {
    return false;
  }
}

/** Without `original` there is no lookup, for users that may not read the stream. */
export async function publishAnew(
  bus: Pick<Bus, "publish" | "read">,
  random: Random,
  subject: string,
  body: Uint8Array,
  { original, ...options }: PublishOptions & { msgId: string; original?: Original },
): Promise<PublishOutcome> {
  const first = await bus.publish(subject, body, options);
  if (first.kind !== "stored" || !first.duplicate) return first;
  if (original && (await isThere(bus, original, first.seq))) return first;
  const second = await bus.publish(subject, body, { ...options, msgId: `${options.msgId}-${token(random)}` });
  return second.kind === "stored" ? { ...second, duplicate: true } : second;
}
