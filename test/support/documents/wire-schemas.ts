/** Which schema a message has, by its subject: for tests that look at everything on the wire. */
import { z } from "zod";
import {
  ActivityReport,
  ActivityTask,
  AuditEntry,
  BlobRef,
  CancelNotice,
  ChildReport,
  Commit,
  ControlRequest,
  DeadLetter,
  InstanceSummary,
  LaneAnswer,
  LaneCalls,
  LaneHoldings,
  LaneQuestion,
  LaneRecordings,
  LaneReturn,
  LaneTasks,
  LeaseValue,
  Parent,
  PoolSignal,
  Pulse,
  QuotaSeat,
  ServiceInfo,
  SessionClaim,
  SessionRecord,
  SessionReport,
  SessionState,
  SessionWork,
  StreamChunk,
  Wake,
  WorkerControl,
  WorkerInfo,
} from "../../../schemas/index.ts";

interface Wired {
  /** What the file of its samples is called. */
  name: string;
  schema: z.ZodType;
}

const wired = (name: string, schema: z.ZodType): Wired => ({ name, schema });

/** First match counts. */
const bySubject: readonly (readonly [RegExp, Wired])[] = [
  [/^history\./, wired("commit", Commit)],
  [/^(orchestrations|inbox\.\d+)\.[^.]+\.activity$/, wired("activity-report", ActivityReport)],
  [/^(orchestrations|inbox\.\d+)\.[^.]+\.child$/, wired("child-report", ChildReport)],
  [/^(orchestrations|inbox\.\d+)\.[^.]+\.session$/, wired("session-report", SessionReport)],
  [/^(orchestrations|inbox\.\d+)\.[^.]+\.wake$/, wired("wake", Wake)],
  [/^(orchestrations|inbox\.\d+)\.[^.]+\.(cancel|terminate)$/, wired("control-request", ControlRequest)],
  [/^(orchestrations|inbox\.\d+)\.[^.]+\.signal\.pool$/, wired("pool-signal", PoolSignal)],
  [/^alarms\./, wired("wake", Wake)],
  [/^(activities|retries)\./, wired("activity-task", ActivityTask)],
  [/^lanes\.(activities|workers)\./, wired("lane-task", z.union([ActivityTask, LaneTasks]))],
  [/^lanes\.sessions\./, wired("lane-calls", LaneCalls)],
  [/^lanes\.owners\..*\.report$/, wired("activity-report", ActivityReport)],
  [/^lanes\.owners\..*\.returned$/, wired("lane-return", LaneReturn)],
  [/^lanes\.recordings\./, wired("lane-recordings", LaneRecordings)],
  [/^lanes\.(holdings\.|seekers$)/, wired("lane-question", LaneQuestion)],
  [/^(claims|nudge|offers|passes)\./, wired("session-claim", SessionClaim)],
  [/^sessions\..*\.calls\./, wired("lane-calls", LaneCalls)],
  [/^(sessions|delayed)\./, wired("session-work", SessionWork)],
  [/^streams\./, wired("stream-chunk", StreamChunk)],
  [/^dead\./, wired("dead-letter", DeadLetter)],
  [/^audit\./, wired("audit-entry", AuditEntry)],
  [/^pulse$/, wired("pulse", Pulse)],
  [/^cancels$/, wired("cancel-notice", CancelNotice)],
  [/^control\./, wired("worker-control", WorkerControl)],
  [/^\$KV\.leases\.quota\./, wired("quota-seat", QuotaSeat)],
  [/^\$KV\.leases\./, wired("lease-value", LeaseValue)],
  [/^\$KV\.instances\./, wired("instance-summary", InstanceSummary)],
  [/^\$KV\.sessions\./, wired("session-record", SessionRecord)],
  [/^\$KV\.workers\./, wired("worker-info", WorkerInfo)],
  [/^\$KV\.services\./, wired("service-info", ServiceInfo)],
];

export const wiredAs = (subject: string): Wired | undefined =>
  bySubject.find(([pattern]) => pattern.test(subject))?.[1];

/** What is answered to a request on this subject. */
export function answeredAs(subject: string): Wired | undefined {
  if (/^lanes\.(holdings\.|seekers$)/.test(subject)) return wired("lane-holdings", LaneHoldings);
  return /^lanes\.|^sessions\..*\.calls\./.test(subject) ? wired("lane-answer", LaneAnswer) : undefined;
}

/** Headers whose value is JSON of ours. */
export const wiredHeaders: Readonly<Record<string, Wired>> = {
  "Holdfast-Parent": wired("parent", Parent),
  "Holdfast-Grants": wired("grants", z.array(SessionState)),
  "Holdfast-Blob": wired("blob-ref", BlobRef),
};

/** Each once. */
export function everyWired(): Wired[] {
  const all = [...bySubject.map(([, one]) => one), ...Object.values(wiredHeaders)];
  const answers = [wired("lane-answer", LaneAnswer), wired("lane-holdings", LaneHoldings)];
  return [...new Map([...all, ...answers].map((one) => [one.name, one])).values()];
}
