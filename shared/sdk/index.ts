/** What users import from "holdfast". */

export type {
  FlowOptions,
  MessageNames,
  OnBusy,
  Overlap,
  ScheduleOptions,
  ScheduleSpec,
} from "../../schemas/index.ts";
export type {
  ActivityContext,
  ActivityDefinition,
  ActivityOptions,
  ActivityRequirements,
  AnyActivity,
  AnyCall,
  AnyOrchestration,
  AnySession,
  AnySignal,
  App,
  BareSessionHandle,
  BatchOptions,
  Call,
  CallContext,
  CallsOf,
  CancellableScope,
  ChildOptions,
  ConfigOf,
  ConfiguredArguments,
  HostCommand,
  HostingOptions,
  HostOptions,
  InitContext,
  InputArguments,
  InputOf,
  Isolation,
  KeyOptions,
  LocalOptions,
  OpenSessionOptions,
  OrchestrationContext,
  OrchestrationDefinition,
  OutputOf,
  PoolDefinition,
  PoolOptions,
  QueryDefinition,
  RateLimit,
  RetryOptions,
  RunOptions,
  Schema,
  SchemaIn,
  SchemaOut,
  SessionDefinition,
  SessionHandle,
  SessionInfo,
  SessionStateName,
  SessionTypeOptions,
  SessionView,
  SignalDefinition,
  SignalIn,
  SignalOut,
  StreamWriter,
  WorkerView,
  WorkLog,
} from "../definitions/index.ts";
export {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  definePool,
  defineQuery,
  defineSession,
  defineSignal,
  defineUpdate,
} from "../definitions/index.ts";
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
  UpdateHandle,
  UpdateOptions,
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
export type { DemoStage, RunDemo } from "./demo-stage.ts";
export type { InstanceHandle } from "./instance/handle.ts";
export type { StreamItem, StreamOptions } from "./instance/instance-stream.ts";
export type { SignalOptions } from "./instance/message-id.ts";
export type {
  CallStream,
  KeyedCallOptions,
  KeyedSession,
  KeyedSessionHandle,
} from "./keyed/keyed-session.ts";
export { type HistoryEntry, HistoryFile } from "./replaying/history-file.ts";
export { type ReplayOptions, type ReplayOutcome, replayHistory } from "./replaying/replay-history.ts";
