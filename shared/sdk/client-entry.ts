/**
 * What users import from "holdfast/client": starting, querying and signalling, without any code that only
 * services need.
 */

export type {
  AnySignal,
  InputArguments,
  OrchestrationDefinition,
  QueryDefinition,
  Schema,
  SignalDefinition,
  SignalIn,
} from "../definitions/index.ts";
export { defineQuery, defineSignal } from "../definitions/index.ts";
export {
  ActivityError,
  CancelledError,
  ChildError,
  HoldfastError,
  isCancelled,
  isSessionLost,
  NonRetryableError,
  SessionCreationTimeout,
  SessionInitFailed,
  SessionLostError,
  SessionQuotaExceeded,
  SessionResourceGone,
  SessionUnusable,
  TimeoutError,
} from "../errors/index.ts";
export type { Duration } from "../runtime/index.ts";
export type { SessionFigures } from "../sessions/index.ts";
export {
  Client,
  type ClientConnectOptions,
  connect,
  type QueryOptions,
  type ResultOptions,
  type StartOptions,
} from "./client.ts";
export type { DeadLetterPage, DeadLetters, DeadLetterView, DeadListOptions } from "./dead-letters.ts";
export type { InstanceHandle } from "./handle.ts";
export { type HistoryEntry, HistoryFile } from "./history-file.ts";
export type { StreamItem, StreamOptions } from "./instance-stream.ts";
export type { InstanceView, ListOptions, ViewOptions } from "./instances.ts";
export type { SignalOptions } from "./message-id.ts";
export type {
  SessionAccess,
  SessionClient,
  SessionDescription,
  SessionListOptions,
} from "./session-client.ts";
export type { WorkerClient } from "./worker-client.ts";
