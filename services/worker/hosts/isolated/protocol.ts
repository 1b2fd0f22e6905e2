/**
 * The messages between the worker and the host in which a session's state lives. They are the same within one
 * thread, to a worker thread, to a child process and to a program in another language; only the carrier
 * differs. In Node both ends are the same build of this package, so the unions are closed and not parsed
 * again; for other programs `foreign/foreign-server.ts` translates them into the published protocol and back
 * (X1).
 */
import type { Failure, MetadataChange } from "../../../../schemas/index.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** State is keyed by session and epoch, never by session alone (S3). */
export interface SessionFacts {
  readonly key: string;
  readonly id: string;
  readonly type: string;
  readonly epoch: number;
  readonly attachment: number;
  readonly workerId: string;
  readonly host: string;
  readonly resourceId: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export const stateKey = (sessionId: string, epoch: number): string => `${sessionId}@${epoch}`;

/** Facts about the task that a run of user code serves. */
export interface RunFacts {
  readonly instanceId: string;
  readonly name: string;
  readonly attempt: number;
  readonly lastHeartbeat: unknown;
}

export interface ModelFacts {
  name: string;
  device: string;
  loadMs: number;
  bytes?: number;
}

/**
 * A value returned by user code; a batch answers each of its items separately. A host in another thread or
 * process serializes objects there: a copy would lose their classes, and with them their `toJSON`.
 */
export type Item = { ok: true; value: unknown } | { ok: true; json: string } | { ok: false; error: Failure };

/** What code asks of its session's blobs. Not checked: other programs send what they like. */
export interface BlobRequest {
  do: "put" | "get" | "delete" | "list";
  name?: unknown;
  data?: unknown;
}

/** Requests to a host that are answered by `done` or `failed`. */
export type HostRequest =
  | {
      kind: "init";
      session: SessionFacts;
      config: unknown;
      restore: Uint8Array | undefined;
      /** The value that `share` returned; undefined if the host is to call `share` itself. */
      shared?: { value: unknown };
    }
  /** Answered with the value that the threads of a host share. Only between threads: other carriers copy. */
  | { kind: "share"; session: SessionFacts; config: unknown; restore: Uint8Array | undefined }
  | { kind: "call"; key: string; name: string; inputs: unknown[]; run: RunFacts }
  | { kind: "activity"; key: string; name: string; input: unknown; run: RunFacts }
  /** The same state under a new right: its holder attached again after an outage of the bus (S14). */
  | { kind: "adopt"; key: string; session: SessionFacts }
  | { kind: "snapshot"; key: string }
  | { kind: "checkpoint"; key: string }
  | { kind: "shutdown"; key: string };

export type ToHost =
  | { kind: "request"; id: number; request: HostRequest }
  | { kind: "abort"; id: number; reason: Failure }
  | { kind: "event"; key: string; name: string; payload: unknown }
  /** Answer to a `write`. */
  | { kind: "wrote"; write: number; error: Failure | undefined }
  /** Answer to a `blob`. */
  | { kind: "blob-done"; ask: number; value: unknown; error: Failure | undefined }
  | { kind: "ping"; n: number };

export type FromHost =
  | { kind: "ready" }
  /** The host will never be ready: the application cannot be loaded there. */
  | { kind: "unable"; error: Failure }
  | { kind: "done"; id: number; value: unknown }
  | { kind: "failed"; id: number; error: Failure }
  | { kind: "heartbeat"; id: number; details: unknown }
  | { kind: "write"; id: number; write: number; chunk: unknown }
  | { kind: "log"; id: number; level: LogLevel; message: string; fields: Record<string, unknown> | undefined }
  | { kind: "model"; key: string; model: ModelFacts }
  | { kind: "metadata"; key: string; change: MetadataChange }
  /** Answered by `blob-done` with the same number. */
  | { kind: "blob"; key: string; ask: number; request: BlobRequest }
  | { kind: "gave-up"; key: string; reason: string }
  | { kind: "pong"; n: number; rssBytes: number | undefined }
  /** A log line outside of any request. */
  | { kind: "host-log"; level: LogLevel; message: string; fields: Record<string, unknown> | undefined }
  /** The host sent a message without a request, which was dropped. */
  | { kind: "refused"; why: Refusal; id: number };

export type Refusal =
  | "reply_to_no_request"
  | "second_reply"
  | "reply_after_cancel"
  | "chunk_of_no_request"
  | "message_too_large";

/** Buffers that belong to the message alone are moved instead of copied. */
export type Post<M> = (message: M, transfer?: ArrayBuffer[]) => void;

/**
 * The buffer to move with these bytes: none if the bytes are only a part of it, because the rest would move
 * too.
 */
export const movable = (bytes: Uint8Array): ArrayBuffer[] =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : [];
