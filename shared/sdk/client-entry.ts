/**
 * What users import from "holdfast/client": starting, querying and signalling, without any code that only
 * services need.
 */

export type { MessageNames } from "../../schemas/index.ts";
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
export { Client } from "./client/client.ts";
export type {
  ClientConnectOptions,
  QueryOptions,
  ResultOptions,
  StartOptions,
} from "./client/client-options.ts";
export { connect } from "./client/connect.ts";
export type { DeadLetterPage, DeadLetters, DeadLetterView, DeadListOptions } from "./client/dead-letters.ts";
export type { InstanceView, ListOptions, ViewOptions } from "./client/instances.ts";
export type {
  SessionAccess,
  SessionClient,
  SessionDescription,
  SessionListOptions,
} from "./client/session-client.ts";
export type { WorkerClient } from "./client/worker-client.ts";
export type { InstanceHandle } from "./instance/handle.ts";
export type { StreamItem, StreamOptions } from "./instance/instance-stream.ts";
export type { SignalOptions } from "./instance/message-id.ts";
export { type HistoryEntry, HistoryFile } from "./replaying/history-file.ts";
