/** Exports of this folder for the services and the testing kit, beyond what users import (index.ts). */
export { DeadLetterView } from "./client/dead-letters.ts";
export { ScheduleView } from "./client/schedule-client.ts";
export { parseDelay, parseFlow } from "./instance/flow-start.ts";
export { type AskRoute, KeyedCalls, type KeyedTarget } from "./keyed/keyed-calls.ts";
export {
  entriesOf,
  type HistoryEntry,
  HistoryFile,
  historyFile,
  storedValues,
} from "./replaying/history-file.ts";
export {
  type RecordedTest,
  type RecordOptions,
  type Runner,
  recordedTest,
  runners,
} from "./replaying/recorded-test.ts";
