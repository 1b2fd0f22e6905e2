/** JSON Schema of everything on the wire, for users of other languages. Written to `schemas/json` by `npm run schemas`. */
import { z } from "zod";
import { Commit } from "./events.ts";
import { FlowAsk, FlowCommand, FlowInput, FlowOptions, FlowReply, FlowWord } from "./flow.ts";
import { KeyedInput, KeyedRequest, KeyedRoute, KeyedSignal } from "./keyed.ts";
import { ClaimAnswer } from "./messages/claim-answer.ts";
import { FromHostMessage, ToHostMessage } from "./messages/host-protocol.ts";
import { ChildReport, UpdateAnswer, Wake } from "./messages/instance-messages.ts";
import {
  LaneAnswer,
  LaneCalls,
  LaneHoldings,
  LaneQuestion,
  LaneRecordings,
  LaneReturn,
  LaneTasks,
} from "./messages/lane-messages.ts";
import { ControlRequest, DeadLetter, WorkerControl } from "./messages/operator-messages.ts";
import {
  LeaseValue,
  QuotaSeat,
  SessionClaim,
  SessionReport,
  SessionWork,
} from "./messages/session-messages.ts";
import { ActivityReport, ActivityTask, CancelNotice, StreamChunk } from "./messages/task-messages.ts";
import { Failure, Payload } from "./payload.ts";
import { InstanceSummary, ServiceInfo, SessionRecord, WorkerInfo } from "./read-models.ts";
import { ScheduleCommand, ScheduleInput, ScheduleSpec, ScheduleState } from "./schedule.ts";

const documents = {
  "activity-report": ActivityReport,
  "activity-task": ActivityTask,
  "cancel-notice": CancelNotice,
  "child-report": ChildReport,
  commit: Commit,
  "control-request": ControlRequest,
  "dead-letter": DeadLetter,
  failure: Failure,
  "host-message-from": FromHostMessage,
  "host-message-to": ToHostMessage,
  "flow-ask": FlowAsk,
  "flow-command": FlowCommand,
  "flow-input": FlowInput,
  "flow-options": FlowOptions,
  "flow-reply": FlowReply,
  "flow-word": FlowWord,
  "keyed-input": KeyedInput,
  "keyed-request": KeyedRequest,
  "keyed-route": KeyedRoute,
  "keyed-signal": KeyedSignal,
  "instance-summary": InstanceSummary,
  "claim-answer": ClaimAnswer,
  "lane-answer": LaneAnswer,
  "lane-calls": LaneCalls,
  "lane-holdings": LaneHoldings,
  "lane-question": LaneQuestion,
  "lane-recordings": LaneRecordings,
  "lane-return": LaneReturn,
  "lane-tasks": LaneTasks,
  "lease-value": LeaseValue,
  payload: Payload,
  "quota-seat": QuotaSeat,
  "schedule-command": ScheduleCommand,
  "schedule-input": ScheduleInput,
  "schedule-spec": ScheduleSpec,
  "schedule-state": ScheduleState,
  "service-info": ServiceInfo,
  "session-claim": SessionClaim,
  "session-record": SessionRecord,
  "session-report": SessionReport,
  "session-work": SessionWork,
  "stream-chunk": StreamChunk,
  "update-answer": UpdateAnswer,
  wake: Wake,
  "worker-control": WorkerControl,
  "worker-info": WorkerInfo,
} satisfies Record<string, z.ZodType>;

/** A later version may add fields (E1). JSON Schema allows them when `additionalProperties` is absent. */
export function withoutCatchall({ jsonSchema }: { jsonSchema: { additionalProperties?: unknown } }): void {
  const { additionalProperties } = jsonSchema;
  if (typeof additionalProperties !== "object" || additionalProperties === null) return;
  if (Object.keys(additionalProperties).length === 0) delete jsonSchema.additionalProperties;
}

/** File name → text. Describes the wire, which is the input of each schema. */
export function jsonSchemaFiles(): Map<string, string> {
  return new Map(
    Object.entries(documents).map(([name, schema]) => [
      `${name}.json`,
      `${JSON.stringify(z.toJSONSchema(schema, { io: "input", override: withoutCatchall }), null, 2)}\n`,
    ]),
  );
}
