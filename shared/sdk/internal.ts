/** Exports of this folder for the services and the testing kit, beyond what users import (index.ts). */
export { DeadLetterView } from "./client/dead-letters.ts";
export { poolShape } from "./client/pool-client.ts";
export { ScheduleView } from "./client/schedule-client.ts";
export { parseFlow } from "./instance/flow-start.ts";
export { KeyedCalls } from "./keyed/keyed-calls.ts";
export { entriesOf, HistoryFile, historyFile } from "./replaying/history-file.ts";
export { type RecordedTest, type RecordOptions, recordedTest, runners } from "./replaying/recorded-test.ts";
