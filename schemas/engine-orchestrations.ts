/** The engine's own orchestrations: keepers of pools, keyed sessions, schedules and limits. */
import { flowOrchestration } from "./flow.ts";
import { keyedOrchestration } from "./keyed.ts";
import { scheduleOrchestration } from "./schedule.ts";
import { lenderOrchestration, poolCallOrchestration, poolOrchestration } from "./session.ts";

/**
 * Lists show their instances apart. A start that its limits left out is not among them: it is the user's
 * instance, under the user's id.
 */
const engineOrchestrations: ReadonlySet<string> = new Set([
  flowOrchestration,
  keyedOrchestration,
  lenderOrchestration,
  poolCallOrchestration,
  poolOrchestration,
  scheduleOrchestration,
]);

/** True for the name of one of the engine's own orchestrations. */
export const isEngineOrchestration = (name: string | undefined): boolean =>
  name !== undefined && engineOrchestrations.has(name);
