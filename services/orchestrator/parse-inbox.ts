/** Parses what arrives in the inbox, once. What does not parse is not for any instance: it is buried by the caller. */
import { createHash } from "node:crypto";
import { z } from "zod";
import {
  ActivityReport,
  BlobRef,
  ChildReport,
  ControlRequest,
  Follower,
  messageIdHeader,
  Name,
  needsHeader,
  Parent,
  type Payload,
  poolInstance,
  poolSignal,
  SessionReport,
  SessionState,
  tokenRule,
  updateIdHeader,
  Wake,
  whyNewer,
} from "../../schemas/index.ts";
import {
  type Decoded,
  decode,
  parseJson,
  type StoredMessage,
  type Subjects,
} from "../../shared/bus/index.ts";
import { maxValueDepth } from "../../shared/errors/index.ts";
import type { InboxMessage } from "../../shared/replay/index.ts";

/** Headers a start, a signal or a cancel may carry. */
export const inboxHeaders = {
  /** The body is in the object store: a BlobRef as JSON. */
  blob: "Holdfast-Blob",
  parent: "Holdfast-Parent",
  follower: "Holdfast-Follower",
  grants: "Holdfast-Grants",
  /** What its sender calls a signal, where that is not the server's message id. */
  messageId: messageIdHeader,
  traceparent: "traceparent",
} as const;

const Grants = z.array(SessionState);

export type Opened =
  | { kind: "message"; instanceId: string; message: InboxMessage }
  | { kind: "refused"; instanceId: string; code: string; message: string }
  /** For a newer process (E1). `marked`: its sender says so; otherwise that message alone waits for one. */
  | { kind: "held"; instanceId: string; marked: boolean; message: string };

export function parseInbox(names: Subjects, stored: StoredMessage): Opened {
  const newer = whyNewer(stored.headers[needsHeader]);
  const whose = newer === undefined ? undefined : names.inboxInstance(stored.subject);
  // Before anything else: it may be a verb we do not know.
  if (newer !== undefined && whose !== undefined)
    return { kind: "held", instanceId: whose, marked: true, message: newer };
  const address = names.parseInbox(stored.subject);
  if (!address) {
    return { kind: "refused", instanceId: "unknown", ...names.whyNotInbox(stored.subject) };
  }
  const { instanceId, verb } = address;
  const opened = parse(stored, instanceId, verb);
  if (opened.kind === "ok") return { kind: "message", instanceId, message: opened.value };
  return opened.newer
    ? { kind: "held", instanceId, marked: false, message: `${verb.kind}: ${opened.message}` }
    : { kind: "refused", instanceId, code: "malformed_message", message: `${verb.kind}: ${opened.message}` };
}

type Verb = NonNullable<ReturnType<Subjects["parseInbox"]>>["verb"];

function parse({ seq, body, headers }: StoredMessage, instanceId: string, verb: Verb): Decoded<InboxMessage> {
  switch (verb.kind) {
    case "start":
      return parseStart(verb.name, body, headers);
    case "signal":
      return mapped(userPayload(body, headers), (payload) => ({
        kind: "signal",
        name: verb.name,
        payload,
        messageId: isToKeeper(instanceId, verb.name) ? undefined : messageIdOf(headers),
      }));
    case "update": {
      // Without an id of the caller's it is applied as often as it is sent.
      const updateId = headers[updateIdHeader] ?? `m-${seq}`;
      if (!Name.safeParse(updateId).success)
        return { kind: "invalid", message: `header ${updateIdHeader} must be ${tokenRule}` };
      return mapped(userPayload(body, headers), (payload) => ({
        kind: "update",
        name: verb.name,
        updateId,
        payload,
      }));
    }
    case "cancel": {
      const parent = parentOf(headers);
      if (parent.kind === "invalid") return parent;
      return mapped(controlRequest(body), ({ reason }) => ({ kind: "cancel", reason, parent: parent.value }));
    }
    case "terminate":
      return mapped(controlRequest(body), ({ reason }) => ({ kind: "terminate", reason }));
    case "activity":
      return mapped(decode(ActivityReport, body), (report) => ({ kind: "activity", report }));
    case "child":
      return mapped(decode(ChildReport, body), (report) => ({ kind: "child", report }));
    case "session":
      return mapped(decode(SessionReport, body), (report) => ({ kind: "session", report }));
    case "wake":
      return mapped(decode(Wake, body), (wake) => ({ kind: "wake", wake }));
  }
}

/** The keeper of a pool knows its users by name, and of those that left more than an instance would (POOL-1). */
const isToKeeper = (instanceId: string, name: string): boolean =>
  name === poolSignal && instanceId.startsWith(poolInstance(""));

const longestMessageId = 64;

/** Kept with the signal for ever: of a long one only what tells it from all others. */
function messageIdOf(headers: StoredMessage["headers"]): string | undefined {
  const id = headers[inboxHeaders.messageId] || headers["Nats-Msg-Id"];
  if (!id || id.length <= longestMessageId) return id || undefined;
  return createHash("sha256").update(id).digest("base64url");
}

function parseStart(
  name: string,
  body: Uint8Array,
  headers: StoredMessage["headers"],
): Decoded<InboxMessage> {
  const input = userPayload(body, headers);
  if (input.kind === "invalid") return input;
  const parent = parentOf(headers);
  if (parent.kind === "invalid") return parent;
  const follower = optionalHeader(Follower, headers[inboxHeaders.follower], inboxHeaders.follower);
  if (follower.kind === "invalid") return follower;
  const granted = optionalHeader(Grants, headers[inboxHeaders.grants], inboxHeaders.grants);
  if (granted.kind === "invalid") return granted;
  return {
    kind: "ok",
    value: {
      kind: "start",
      name,
      input: input.value,
      parent: parent.value,
      follower: follower.value,
      granted: granted.value,
      traceparent: headers[inboxHeaders.traceparent],
    },
  };
}

const controlRequest = (body: Uint8Array): Decoded<ControlRequest> =>
  body.length === 0 ? { kind: "ok", value: {} } : decode(ControlRequest, body);

const parentOf = (headers: StoredMessage["headers"]): Decoded<Parent | undefined> =>
  optionalHeader(Parent, headers[inboxHeaders.parent], inboxHeaders.parent);

/** A user's value: the body itself as JSON, nothing for an empty body, or a blob. */
function userPayload(body: Uint8Array, headers: StoredMessage["headers"]): Decoded<Payload> {
  const blob = optionalHeader(BlobRef, headers[inboxHeaders.blob], inboxHeaders.blob);
  if (blob.kind === "invalid") return blob;
  if (blob.value) return { kind: "ok", value: { blob: blob.value } };
  if (body.length === 0) return { kind: "ok", value: { json: undefined } };
  return mapped(parseJson(body, { maxDepth: maxValueDepth }), (json) => ({ json }));
}

function optionalHeader<T>(
  schema: z.ZodType<T>,
  text: string | undefined,
  name: string,
): Decoded<T | undefined> {
  if (text === undefined) return { kind: "ok", value: undefined };
  const decoded = decode(schema, Buffer.from(text));
  return decoded.kind === "ok" ? decoded : { kind: "invalid", message: `header ${name}: ${decoded.message}` };
}

const mapped = <A, B>(decoded: Decoded<A>, fn: (value: A) => B): Decoded<B> =>
  decoded.kind === "ok" ? { kind: "ok", value: fn(decoded.value) } : decoded;
