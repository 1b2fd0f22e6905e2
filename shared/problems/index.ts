export type { InstallationView, Problem } from "./problem.ts";
export {
  heldBackGeneration,
  missingOrchestrators,
  missingWatchers,
  strugglingWorkers,
  unheldPartitions,
} from "./processes.ts";
export {
  deadLetters,
  longQueues,
  parkedInstances,
  unservedActivities,
  unservedSessions,
} from "./waiting-work.ts";
