/** The one place that knows NATS error codes. Errors are not matched by their text, but for one. */
import { AuthorizationError, errors, UserAuthenticationExpiredError } from "@nats-io/nats-core";
import { Fault, type FaultKind } from "../../errors/index.ts";

/** The error object in a JetStream reply. */
export interface ApiError {
  code: number;
  err_code: number;
  description: string;
}

export const codes = {
  consumerNotFound: 10014,
  noMessageFound: 10037,
  sequenceNotFound: 10043,
  messageDeleteFailed: 10057,
  streamNameInUse: 10058,
  streamNotFound: 10059,
} as const;

const conflicts = new Set([10071, 10164]);
export const isConflict = (error: ApiError): boolean => conflicts.has(error.err_code);

/** The same message was sent before, and the replicas have not stored it yet. */
export const isInProcess = (error: ApiError): boolean => error.err_code === 10158;

type Entry = readonly [kind: FaultKind, code: string, hint?: string];

const storageFull: Entry = [
  "transient",
  "storage_full",
  "The server has no room left: free disk space or raise the limit of JetStream. Work then resumes by itself.",
];
const notEnabled: Entry = [
  "config",
  "jetstream_disabled",
  "Enable JetStream for the server and the account.",
];

/** The answer of every server of a cluster without a leader, because too many servers are down. */
const noLeader: Entry = [
  "transient",
  "nats_unavailable",
  "The NATS servers have no leader. Work resumes by itself when most of the servers are back.",
];

const table: Readonly<Record<number, Entry>> = {
  10005: [
    "transient",
    "too_few_servers",
    "A stream needs as many NATS servers as it has copies (NATS_REPLICAS): when the missing ones are there it goes on by itself.",
  ],
  10008: noLeader,
  10014: ["transient", "consumer_gone"],
  // The account's limit, not the server's.
  10002: storageFull,
  10023: storageFull,
  10026: [
    "config",
    "too_many_consumers",
    "Raise max_consumers of the stream or default_max_consumers of the server.",
  ],
  10027: [
    "transient",
    "too_many_streams",
    "Raise the limit of streams of the account, or use HISTORY_LAYOUT=shared.",
  ],
  10028: storageFull,
  10035: notEnabled,
  10039: notEnabled,
  10047: storageFull,
  10054: ["contract", "payload_too_large"],
  10058: ["config", "stream_mismatch"],
  10059: ["transient", "no_stream"],
  10065: ["config", "subjects_taken", "Another stream has these subjects: delete it or set HOLDFAST_PREFIX."],
  10074: [
    "config",
    "replicas_need_cluster",
    "More than one copy (NATS_REPLICAS) needs a NATS cluster of at least as many servers.",
  ],
  10076: notEnabled,
  10077: storageFull,
  10110: ["contract", "immutable"],
  10165: ["contract", "invalid_ttl"],
  10166: ["config", "ttl_disabled"],
  10189: ["contract", "invalid_schedule"],
  10190: ["contract", "invalid_schedule"],
};

export function faultFrom(error: ApiError, doing: string): Fault {
  const [kind, code, hint] = table[error.err_code] ?? [error.code >= 500 ? "transient" : "bug", "nats_error"];
  const message = `${doing}: ${error.description} (NATS error ${error.err_code})`;
  return new Fault(kind, { code, message, details: error, ...(hint === undefined ? {} : { hint }) });
}

export const noStream = (doing: string): Fault =>
  new Fault("transient", { code: "no_stream", message: `${doing}: no stream answers` });

export const permissionDenied = (doing: string, cause: unknown): Fault =>
  new Fault("config", {
    code: "permission_denied",
    message: `${doing}: this NATS user lacks the permission`,
    hint: "Give the user of this service the permission, see docs/security.md.",
    cause,
  });

export const unavailable = (doing: string): Fault =>
  new Fault("transient", { code: "nats_unavailable", message: `${doing}: NATS did not answer` });

export const busClosed = (doing: string): Fault =>
  new Fault("transient", { code: "bus_closed", message: `${doing}: the connection was closed` });

export const tooLarge = (doing: string, bytes: number, limit: number): Fault =>
  new Fault("contract", {
    code: "payload_too_large",
    message: `${doing}: ${bytes} bytes are more than the ${limit} this server takes in one message`,
  });

/** Errors the client library throws before anything is sent. */
export function refusedByClient(error: unknown, doing: string): unknown {
  if (error instanceof errors.InvalidSubjectError) {
    return new Fault("contract", {
      code: "invalid_subject",
      message: `${doing}: NATS cannot carry this subject`,
      cause: error,
    });
  }
  if (error instanceof errors.InvalidArgumentError) {
    return new Fault("contract", {
      code: "payload_too_large",
      message: `${doing}: body and headers are more than this server takes in one message`,
      cause: error,
    });
  }
  return error;
}

export const isPermissionError = (
  error: unknown,
): error is InstanceType<typeof errors.PermissionViolationError> =>
  error instanceof errors.PermissionViolationError;

/**
 * True if the server closed the connection because a busy process logged in too slowly; its key may be right. Matched
 * by text: the server sends no code, and the client library has one class for all refusals.
 */
const isLateLogin = (error: unknown): boolean =>
  error instanceof AuthorizationError && /authentication timeout/i.test(error.message);

export const isAuthError = (error: unknown): boolean =>
  (error instanceof AuthorizationError && !isLateLogin(error)) ||
  error instanceof UserAuthenticationExpiredError;
