/** What users import from "holdfast". */

export type { FlowOptions, OnBusy, Overlap, ScheduleSpec } from "../../schemas/index.ts";
export type {
  ActivityContext,
  ActivityDefinition,
  ActivityOptions,
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
  LocalOptions,
  OpenSessionOptions,
  OrchestrationContext,
  OrchestrationDefinition,
  OutputOf,
  PoolOptions,
  QueryDefinition,
  RateLimit,
  RetryOptions,
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
  WorkLog,
} from "../definitions/index.ts";
export {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
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
  SessionResourceGone,
  SessionUnusable,
  TimeoutError,
} from "../errors/index.ts";
export type { Duration } from "../runtime/index.ts";
export {
  Client,
  type ClientConnectOptions,
  connect,
  type QueryOptions,
  type ResultOptions,
  type StartOptions,
  type UpdateHandle,
  type UpdateOptions,
} from "./client.ts";
export type { DeadLetterPage, DeadLetters, DeadLetterView, DeadListOptions } from "./dead-letters.ts";
export type { DemoStage, RunDemo } from "./demo-stage.ts";
export type { InstanceHandle } from "./handle.ts";
export { type HistoryEntry, HistoryFile } from "./history-file.ts";
export type { StreamItem, StreamOptions } from "./instance-stream.ts";
export type { InstanceView, ListOptions, ViewOptions } from "./instances.ts";
export type { SignalOptions } from "./message-id.ts";
export { type ReplayOptions, type ReplayOutcome, replayHistory } from "./replay-history.ts";
export type {
  BackfillOptions,
  CreateScheduleOptions,
  ScheduleClient,
  ScheduleView,
} from "./schedule-client.ts";
export type {
  SessionAccess,
  SessionClient,
  SessionDescription,
  SessionListOptions,
} from "./session-client.ts";
export type { WorkerClient } from "./worker-client.ts";
