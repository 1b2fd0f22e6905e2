/** Exports of this folder for the services and the testing kit, beyond what users import (index.ts). */
export { DeadLetterView } from "./dead-letters.ts";
export { parseDelay, parseFlow } from "./flow-start.ts";
export { entriesOf, type HistoryEntry, HistoryFile, historyFile, storedValues } from "./history-file.ts";
export { type AskRoute, KeyedCalls, type KeyedTarget } from "./keyed/keyed-calls.ts";
export { publishSurely } from "./publish-surely.ts";
export {
  type RecordedTest,
  type RecordOptions,
  type Runner,
  recordedTest,
  runners,
} from "./recorded-test.ts";
export { ScheduleView } from "./schedule-client.ts";
