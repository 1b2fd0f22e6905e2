/** All routes, and the names their schemas have in the OpenAPI file. */
import type { z } from "zod";
import {
  ActivityTimeouts,
  Attachment,
  AuditEntry,
  BlobRef,
  CheckpointRef,
  Commit,
  Failure,
  HistoryEvent,
  MessageNames,
  Parent,
  Payload,
  RetryPolicy,
  ScheduleRun,
  ScheduleSpec,
  ServiceInfo,
  SessionOptions,
  SessionPhase,
  SessionState,
  TaskTarget,
} from "../../../schemas/index.ts";
import { ScheduleView } from "../../../shared/sdk/internal.ts";
import { openApi } from "../http/openapi.ts";
import { ProblemBody } from "../http/problem.ts";
import type { RouteSpec } from "../http/route.ts";
import { Overview } from "../live/overview.ts";
import { InstanceRow, SessionRow, WorkerRow } from "../live/rows.ts";
import { StreamsView } from "../live/stream-watch.ts";
import { Trouble } from "../live/troubles.ts";
import { ApiToken } from "../security/index.ts";
import type { GatewayParts } from "./context.ts";
import { flowRoutes, WaitingKeys } from "./flow.ts";
import { HistoryPage } from "./history.ts";
import {
  Accepted,
  BlobValue,
  InstanceList,
  InstanceResult,
  InstanceView,
  instanceRoutes,
  StreamPage,
} from "./instances.ts";
import { CallResult, KeyClosed, KeyDescription, keyedRoutes } from "./keyed.ts";
import { messageRoutes, QueryAnswer, UpdateResult } from "./messages.ts";
import { PoolAccepted, PoolList, PoolRow, poolRoutes } from "./pools.ts";
import { DeadLetterShown, DeadList, DeadRetried, Done, queueRoutes } from "./queues.ts";
import { ScheduleAccepted, ScheduleList, scheduleRoutes } from "./schedules.ts";
import { SessionAccepted, SessionExplained, SessionList, sessionRoutes } from "./sessions.ts";
import {
  AuditList,
  LoggedIn,
  LoggedOut,
  LoginWays,
  Orchestrations,
  ServiceList,
  systemRoutes,
  Whoami,
} from "./system.ts";
import { TokenIssued, TokenList, TokenRevoked, tokenRoutes } from "./tokens.ts";
import { WorkerAccepted, WorkerList, workerRoutes } from "./workers.ts";

export type { GatewayParts } from "./context.ts";

export const allRoutes = (parts: GatewayParts): RouteSpec[] => [
  ...systemRoutes(parts),
  ...tokenRoutes(parts),
  ...instanceRoutes(parts),
  ...messageRoutes(parts),
  ...sessionRoutes(parts),
  ...keyedRoutes(parts),
  ...poolRoutes(parts),
  ...workerRoutes(parts),
  ...scheduleRoutes(parts),
  ...flowRoutes(parts),
  ...queueRoutes(parts),
];

const named: Record<string, z.ZodType> = {
  Accepted,
  ActivityTimeouts,
  ApiToken,
  Attachment,
  AuditEntry,
  AuditList,
  BlobRef,
  BlobValue,
  CallResult,
  CheckpointRef,
  Commit,
  DeadLetter: DeadLetterShown,
  DeadList,
  DeadRetried,
  Done,
  Failure,
  HistoryEvent,
  HistoryPage,
  InstanceList,
  InstanceResult,
  InstanceRow,
  InstanceView,
  KeyClosed,
  KeyDescription,
  LoggedIn,
  LoggedOut,
  LoginWays,
  MessageNames,
  Orchestrations,
  Overview,
  Parent,
  Payload,
  Pool: PoolRow,
  PoolAccepted,
  PoolList,
  Problem: ProblemBody,
  QueryAnswer,
  RetryPolicy,
  Schedule: ScheduleView,
  ScheduleAccepted,
  ScheduleList,
  ScheduleRun,
  ScheduleSpec,
  ServiceInfo,
  ServiceList,
  Session: SessionRow,
  SessionAccepted,
  SessionExplained,
  SessionList,
  SessionOptions,
  SessionPhase,
  SessionState,
  StreamPage,
  Streams: StreamsView,
  TaskTarget,
  TokenIssued,
  TokenList,
  TokenRevoked,
  Trouble,
  UpdateResult,
  WaitingKeys,
  Whoami,
  Worker: WorkerRow,
  WorkerAccepted,
  WorkerList,
};

export const openApiOf = (routes: readonly RouteSpec[], version: string): Record<string, unknown> =>
  openApi(routes, { version, named, problem: "Problem" });
export { CallBody, CallPath, keyedHandle } from "./keyed.ts";
