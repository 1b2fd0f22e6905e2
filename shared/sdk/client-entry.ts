/**
 * What users import from "holdfast/client": starting, querying and signalling, without any code that only
 * services need.
 */

export type {
  FlowOptions,
  MessageNames,
  OnBusy,
  Overlap,
  ScheduleOptions,
  ScheduleSpec,
} from "../../schemas/index.ts";
export type {
  AnyCall,
  AnyOrchestration,
  AnySession,
  AnySignal,
  BlobInfo,
  Call,
  CallsOf,
  ConfigOf,
  ConfiguredArguments,
  InputArguments,
  InputOf,
  KeyOptions,
  OrchestrationDefinition,
  OutputOf,
  PoolDefinition,
  PoolOptions,
  QueryDefinition,
  Schema,
  SchemaIn,
  SchemaOut,
  SessionBlobs,
  SessionDefinition,
  SignalDefinition,
  SignalIn,
  SignalOut,
  UpdateDefinition,
} from "../definitions/index.ts";
export { defineQuery, defineSignal, defineUpdate } from "../definitions/index.ts";
export type { HoldfastErrorInit, SessionLostDetails } from "../errors/index.ts";
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
export type { LeaseKeyState } from "../leases/index.ts";
export type { Duration } from "../runtime/index.ts";
export type { SessionFigures } from "../sessions/index.ts";
export { Client } from "./client/client.ts";
export type {
  ClientConnectOptions,
  QueryOptions,
  ResultOptions,
  StartOptions,
  UpdateHandle,
  UpdateOptions,
  WaitForEndOptions,
} from "./client/client-options.ts";
export { connect } from "./client/connect.ts";
export type { DeadLetterPage, DeadLetters, DeadLetterView, DeadListOptions } from "./client/dead-letters.ts";
export type { InstanceView, ListOptions, ViewOptions } from "./client/instances.ts";
export type { PoolClient, PoolHandle, PoolOf, PoolView } from "./client/pool-client.ts";
export type {
  BackfillOptions,
  CreateScheduleOptions,
  ScheduleClient,
  ScheduleView,
} from "./client/schedule-client.ts";
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
export type {
  CallStream,
  KeyedCallOptions,
  KeyedSession,
  KeyedSessionHandle,
} from "./keyed/keyed-session.ts";
export type { HistoryEntry } from "./replaying/history-file.ts";
export { HistoryFile } from "./replaying/history-file.ts";
