/**
 * What the worker and the place where a session's state lives say to each other. The same words in one thread, to a
 * worker thread, to a child process and to a program in another language; only the carrier differs. In Node both ends
 * are the same build of this package, so the unions are closed and not parsed again; for other programs
 * `foreign/foreign-server.ts` turns them into the published protocol and back (X1).
 */
import type { Failure } from "../../../schemas/index.ts";

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

/** What a run of user code is told about the task it serves. */
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
 * What user code returned: a batch answers each of its items alone. Where the host is another thread or process, what
 * has parts is written down there: a copy would lose its classes, and with them what they say of themselves in JSON.
 */
export type Item = { ok: true; value: unknown } | { ok: true; json: string } | { ok: false; error: Failure };

/** Things asked of a host that are answered by `done` or `failed`. */
export type HostRequest =
  | {
      kind: "init";
      session: SessionFacts;
      config: unknown;
      restore: Uint8Array | undefined;
      /** What `share` returned; absent where the host is to ask for it itself. */
      shared?: { value: unknown };
    }
  /** Answered with what the threads of a host share. Only between threads: other carriers copy. */
  | { kind: "share"; session: SessionFacts; config: unknown; restore: Uint8Array | undefined }
  | { kind: "call"; key: string; name: string; inputs: unknown[]; run: RunFacts }
  | { kind: "activity"; key: string; name: string; input: unknown; run: RunFacts }
  /** The same state under a new right: its owner attached again after an outage of the bus (S14). */
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
  | { kind: "ping"; n: number };

export type FromHost =
  | { kind: "ready" }
  /** It will never be ready: the application cannot be loaded there. */
  | { kind: "unable"; error: Failure }
  | { kind: "done"; id: number; value: unknown }
  | { kind: "failed"; id: number; error: Failure }
  | { kind: "heartbeat"; id: number; details: unknown }
  | { kind: "write"; id: number; write: number; chunk: unknown }
  | { kind: "log"; id: number; level: LogLevel; message: string; fields: Record<string, unknown> | undefined }
  | { kind: "model"; key: string; model: ModelFacts }
  | { kind: "gave-up"; key: string; reason: string }
  | { kind: "pong"; n: number; rssBytes: number | undefined }
  /** Said outside of any request. */
  | { kind: "host-log"; level: LogLevel; message: string; fields: Record<string, unknown> | undefined }
  /** It said something that nobody asked for, and that was dropped. */
  | { kind: "refused"; why: Refusal; id: number };

export type Refusal =
  | "reply_to_no_request"
  | "second_reply"
  | "reply_after_cancel"
  | "chunk_of_no_request"
  | "message_too_large";

/** Buffers that belong to the message alone move instead of being copied. */
export type Post<M> = (message: M, transfer?: ArrayBuffer[]) => void;

/** The buffer of bytes that may be given away: a view of a part would take its neighbours along. */
export const movable = (bytes: Uint8Array): ArrayBuffer[] =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : [];
