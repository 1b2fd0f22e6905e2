/**
 * SEC-3 An answer of the server is not a message of any client. A client that may send a request can name any
 *    subject for the answer, and the server publishes the answer there, even if the client itself may not
 *    publish there. Such an answer on a subject of the inbox is refused: the acknowledgement of a publish, an
 *    answer of the JetStream API, or a message that was read from a stream, which carries the name of that
 *    stream.
 */

import type { StoredMessage, Subjects } from "../../shared/bus/index.ts";
import { headerNames } from "../../shared/bus/index.ts";

const acknowledgement = /^\{("error":\{"code":\d+.*\},)?"stream":"([\w=-]+)","seq":\d+/;
const apiAnswer = /^\{"type":"io\.nats\.jetstream\.api\.v\d/;
const userInfo = /^\{"server":\{"name":"[^"]*","host":"/;
const longest = 512;

export function isServerAnswer(names: Subjects, { headers, body }: StoredMessage): boolean {
  if (headers[headerNames.storedStream] !== undefined && headers[headerNames.storedSeq] !== undefined)
    return true;
  // An answer begins with "{" and has no headers; most messages have headers.
  if (body[0] !== 0x7b || !isEmpty(headers)) return false;
  const text = Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, longest)).toString("latin1");
  if (apiAnswer.test(text) || userInfo.test(text)) return true;
  const [, , stream] = acknowledgement.exec(text) ?? [];
  return stream !== undefined && names.isOwnStream(stream);
}

function isEmpty(headers: object): boolean {
  for (const _ in headers) return false;
  return true;
}
