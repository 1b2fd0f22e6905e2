/** What users import from "holdfast": what "holdfast/client" exports, and what defines an application. */

export type {
  ActivityContext,
  ActivityDefinition,
  ActivityOptions,
  ActivityRequirements,
  AnyActivity,
  App,
  BareSessionHandle,
  BatchOptions,
  CallContext,
  CancellableScope,
  ChildOptions,
  HostCommand,
  HostingOptions,
  HostOptions,
  InitContext,
  Isolation,
  LocalOptions,
  OpenSessionOptions,
  OrchestrationContext,
  RateLimit,
  RetryOptions,
  RunOptions,
  Saga,
  SessionHandle,
  SessionInfo,
  SessionStateName,
  SessionTypeOptions,
  SessionView,
  SignalStream,
  StreamWriter,
  TimeoutOption,
  WorkerView,
  WorkLog,
} from "../definitions/index.ts";
export {
  call,
  collectApp,
  defineActivity,
  defineOrchestration,
  definePool,
  defineSession,
} from "../definitions/index.ts";
// The one list of the client's names.
export * from "./client-entry.ts";
export type { DemoStage, RunDemo } from "./demo-stage.ts";
export type { ReplayOptions, ReplayOutcome } from "./replaying/replay-history.ts";
export { replayHistory } from "./replaying/replay-history.ts";
