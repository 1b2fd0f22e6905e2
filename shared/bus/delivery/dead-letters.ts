/**
 * Dead letters: messages that no receiver could process are stored once, with the reason, cut to a size that
 * can be stored.
 */
import type { DeadLetter } from "../../../schemas/index.ts";
import { announceFault, type Runtime } from "../../runtime/index.ts";
import type { Bus, Delivery, StoredMessage } from "../bus.ts";
import { encode } from "../codec.ts";
import type { Subjects } from "../subjects.ts";
import { publishAnew } from "./publish-anew.ts";

export interface Burial {
  /** The kind of message: `inbox`, `activity`, `claim`, … */
  what: string;
  /** The instance, session or worker the message is about, if the message says. */
  id: string;
  code: string;
  message: string;
}

interface BurialDeps {
  bus: Bus;
  names: Subjects;
  runtime: Pick<Runtime, "clock" | "announce" | "random">;
}

/**
 * SEC-7 Workers write letters of these kinds and no others. Such a letter is never sent again to an instance, and no
 *    other kind of letter can be kept from being stored by a worker that uses up its message id.
 */
export const lettersOfWorkers: readonly string[] = ["activity", "claim", "session"];

const headersRoom = 16 * 1024;

/** Returns true once the dead letter is stored: only then may the original be acknowledged. */
export async function bury(deps: BurialDeps, original: StoredMessage, burial: Burial): Promise<boolean> {
  const { bus, names, runtime } = deps;
  const { what, id, code, message } = burial;
  const { body, cut } = fitting(original.body, bus.maxPayloadBytes);
  const letter: DeadLetter = {
    v: 1,
    what,
    id: id.slice(0, 256),
    subject: names.published(original.subject),
    reason: { code, message: `${message.slice(0, 4096)}${cut}` },
    at: runtime.clock.now(),
    headers: fittingHeaders(original.headers),
    body: Buffer.from(body).toString("base64"),
  };
  const subject = names.dead(what, id);
  // A worker may not read dead letters, so for its kinds there is no lookup.
  const seen = lettersOfWorkers.includes(what)
    ? {}
    : { original: { stream: names.deadStream, filter: subject } };
  const outcome = await publishAnew(bus, runtime.random, subject, encode(letter), {
    msgId: `dead-${what}-${original.seq}`,
    ...seen,
  });
  if (outcome.kind !== "stored") return false;
  if (!outcome.duplicate) {
    runtime.announce({
      kind: "dead.lettered",
      what,
      id: letter.id,
      subject: letter.subject,
      code,
      message,
    });
  }
  return true;
}

const againMs = 1_000;

/** Acknowledges the delivery once its dead letter is stored; otherwise the server delivers it again. */
export async function buryDelivery(deps: BurialDeps, delivery: Delivery, burial: Burial): Promise<void> {
  try {
    if (await bury(deps, delivery, burial)) delivery.ack();
    else delivery.nak(againMs);
  } catch (error) {
    delivery.nak(againMs);
    announceFault(deps.runtime, `dead letter of ${delivery.subject}`, error);
  }
}

/** Base64 turns three bytes into four, and the other fields of the letter need room too. */
function fitting(body: Uint8Array, maxPayloadBytes: number): { body: Uint8Array; cut: string } {
  const room = Math.max(0, Math.floor(((maxPayloadBytes - 2 * headersRoom) * 3) / 4));
  return body.length <= room
    ? { body, cut: "" }
    : { body: body.subarray(0, room), cut: ` (the first ${room} of ${body.length} bytes are kept)` };
}

function fittingHeaders(headers: StoredMessage["headers"]): Record<string, string> {
  const kept: Record<string, string> = {};
  let room = headersRoom;
  for (const [name, value] of Object.entries(headers)) {
    room -= name.length + value.length;
    if (room < 0) break;
    kept[name] = value;
  }
  return kept;
}
