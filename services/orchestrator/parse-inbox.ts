/**
 * Parses each inbox message once. A message that does not parse belongs to no instance: the caller moves it
 * to the dead letters.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import {
  ActivityReport,
  BlobRef,
  ChildReport,
  ControlRequest,
  type FlowOptions,
  Follower,
  keyedInstance,
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
  headerNames,
  madeSignalId,
  madeUpdateId,
  parseJson,
  type StoredMessage,
  type Subjects,
} from "../../shared/bus/index.ts";
import {
  type Capabilities,
  type Doubt,
  doubtReport,
  doubtSessionReport,
  noCapabilities,
} from "../../shared/capabilities/index.ts";
import { maxValueDepth } from "../../shared/errors/index.ts";
import type { InboxMessage } from "../../shared/replay/index.ts";
import { parseFlow } from "../../shared/sdk/internal.ts";
import { mayPark } from "./capabilities/may-park.ts";
import { isServerAnswer } from "./server-answer.ts";

/** Headers a start, a signal or a cancel may carry. */
export const inboxHeaders = {
  /** The body is in the object store: a BlobRef as JSON. */
  blob: headerNames.blob,
  parent: headerNames.parent,
  follower: headerNames.follower,
  grants: headerNames.grants,
  /** The sender's own id of a signal, if it differs from the server's message id. */
  messageId: messageIdHeader,
  traceparent: "traceparent",
  /** Shows that an orchestrator set parent, follower and grants (C1). */
  capability: headerNames.capability,
} as const;

const Grants = z.array(SessionState);

export type Opened =
  | { kind: "message"; instanceId: string; message: InboxMessage }
  | { kind: "refused"; instanceId: string; code: string; message: string; doubt?: Doubt }
  /**
   * Only a newer process can read the message (E1). `marked`: its header says so, and its sender may make the
   * instance wait (may-park.ts); otherwise only this message waits.
   */
  | { kind: "held"; instanceId: string; marked: boolean; message: string };

export function parseInbox(
  names: Subjects,
  stored: StoredMessage,
  capabilities: Capabilities = noCapabilities,
): Opened {
  const newer = whyNewer(stored.headers[needsHeader]);
  const addressee = newer === undefined ? undefined : names.inboxInstance(stored.subject);
  // Check this first: the verb may be unknown to this version.
  if (newer !== undefined && addressee !== undefined)
    return {
      kind: "held",
      instanceId: addressee,
      marked: mayPark(capabilities, names, stored),
      message: newer,
    };
  const address = names.parseInbox(stored.subject);
  if (!address) {
    return { kind: "refused", instanceId: "unknown", ...names.whyNotInbox(stored.subject) };
  }
  const { instanceId, verb } = address;
  if (isServerAnswer(names, stored))
    return {
      kind: "refused",
      instanceId,
      code: "server_answer",
      message: `${verb.kind}: an answer of the NATS server; a client made the server send it to this subject`,
    };
  const opened = parse(stored, instanceId, verb);
  if (opened.kind === "ok") {
    const doubt = doubtOf(capabilities, instanceId, opened.value, stored);
    if (doubt === undefined) return { kind: "message", instanceId, message: opened.value };
    return { kind: "refused", instanceId, doubt, ...refusedReport(verb.kind, doubt) };
  }
  return opened.newer
    ? { kind: "held", instanceId, marked: false, message: `${verb.kind}: ${opened.message}` }
    : { kind: "refused", instanceId, code: "malformed_message", message: `${verb.kind}: ${opened.message}` };
}

function doubtOf(
  capabilities: Capabilities,
  instanceId: string,
  message: InboxMessage,
  { headers }: StoredMessage,
): Doubt | undefined {
  switch (message.kind) {
    case "activity":
      return doubtReport(capabilities, instanceId, message.report);
    case "session":
      return doubtSessionReport(capabilities, instanceId, message.report);
    case "start":
      return capabilities.doubtStart(instanceId, message, headers[inboxHeaders.capability]);
    default:
      return undefined;
  }
}

const refusedReport = (verb: string, doubt: Doubt): { code: string; message: string } => ({
  code: "not_capable",
  message:
    doubt === "missing"
      ? `${verb}: carries no capability, so any client may have sent it`
      : `${verb}: carries a capability that no orchestrator made for it, or made with a key that is no longer known`,
});

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
        ...(isToKeeper(instanceId, verb.name) ? {} : messageIdOf(instanceId, headers)),
      }));
    case "update": {
      // Without an id from the caller the update is applied as often as it is sent.
      const updateId = headers[updateIdHeader] ?? `m-${seq}`;
      if (!Name.safeParse(updateId).success)
        return { kind: "invalid", message: `header ${updateIdHeader} must be ${tokenRule}` };
      return mapped(userPayload(body, headers), (payload) => ({
        kind: "update",
        name: verb.name,
        updateId,
        payload,
        ofCaller: headers[updateIdHeader] !== undefined && !updateId.startsWith(madeUpdateId),
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

/**
 * True for a message to the keeper of a pool, which knows its users by name and remembers more of former
 * users than an instance would (POOL-1).
 */
const isToKeeper = (instanceId: string, name: string): boolean =>
  name === poolSignal &&
  (instanceId.startsWith(poolInstance("")) || instanceId.startsWith(keyedInstance("")));

const longestMessageId = 64;

function messageIdOf(
  instanceId: string,
  headers: StoredMessage["headers"],
): { messageId?: string; ofCaller?: boolean } {
  const id = headers[inboxHeaders.messageId] || headers[headerNames.messageId];
  if (!id) return {};
  const ofCaller = !id.startsWith(madeSignalId(instanceId));
  return { messageId: shortMessageId(id), ofCaller };
}

/** The id stays in the history with its signal, so a long id is shortened to its hash. */
export const shortMessageId = (id: string): string =>
  id.length <= longestMessageId ? id : createHash("sha256").update(id).digest("base64url");

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
  const flow = flowOf(headers[headerNames.flow]);
  if (flow.kind === "invalid") return flow;
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
      flow: flow.value,
      granted: granted.value,
      traceparent: headers[inboxHeaders.traceparent],
    },
  };
}

/** Checks the flow options of a start as the client does, because any NATS client may write them. */
function flowOf(text: string | undefined): Decoded<FlowOptions | undefined> {
  if (text === undefined) return { kind: "ok", value: undefined };
  const json = parseJson(Buffer.from(text));
  try {
    if (json.kind === "ok") return { kind: "ok", value: parseFlow(json.value) };
    return { kind: "invalid", message: `header ${headerNames.flow}: ${json.message}` };
  } catch (error) {
    return { kind: "invalid", message: `header ${headerNames.flow}: ${String(error)}` };
  }
}

const controlRequest = (body: Uint8Array): Decoded<ControlRequest> =>
  body.length === 0 ? { kind: "ok", value: {} } : decode(ControlRequest, body);

const parentOf = (headers: StoredMessage["headers"]): Decoded<Parent | undefined> =>
  optionalHeader(Parent, headers[inboxHeaders.parent], inboxHeaders.parent);

/** A user's value: the body as JSON, undefined for an empty body, or a reference to a blob. */
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
