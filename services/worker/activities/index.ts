export { callUserCode, type Limits, type Settled, type UserCall } from "./call-user-code.ts";
export { publishReport, type Report, type ReportOptions, reportOf } from "./report.ts";
export { failureOf, runTask, type TaskDeps, type TaskRun } from "./run-task.ts";
export { type ServedActivity, servedActivities } from "./served.ts";
export { ActivityService } from "./service.ts";
export type { ReportedOutcome, TaskOutcome } from "./task-outcome.ts";
export { type StreamSink, TaskStream } from "./task-stream.ts";
