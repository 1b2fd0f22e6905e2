export { type Due, lookForDue } from "./due.ts";
export { type ParsedSchedule, parseSchedule } from "./parse-schedule.ts";
export { dueAt, nextTimes, runId, timesBetween } from "./schedule-times.ts";
