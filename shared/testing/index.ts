/** What users import from "holdfast/testing". */
export type { Instant } from "./clock/instant.ts";
export {
  type CallFakes,
  everySeed,
  type InstanceRef,
  type KillOptions,
  TestEnvironment,
  testEnvironment,
} from "./environment/environment.ts";
export type { FaultPointName, TestEnvironmentOptions } from "./environment/options.ts";
export type { ExpectedEvent } from "./history/expected-event.ts";
export { checkHistory } from "./history/history-laws.ts";
export { historyTable } from "./history/history-table.ts";
export { expectReplay, type RecordedTest, type RecordOptions, recordTest } from "./history/record-test.ts";
export { type BusFaults, noFaults, someFaults } from "./memory/index.ts";
export {
  callCompleted,
  cancelled,
  childCompleted,
  childFailed,
  completed,
  elapsed,
  type Fact,
  failed,
  type GivenError,
  sessionActivated,
  sessionLost,
  signalled,
  updated,
} from "./story/facts.ts";
export { given, type Story } from "./story/story.ts";
