/** Settings of the orchestrator beside those of every service. */
import { z } from "zod";
import { hardLimitEvents } from "../../shared/replay/index.ts";
import { setting } from "../setting.ts";

export const orchestratorSettings = {
  HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: setting
    .wholeNumber(1000, 600_000)
    .default(5000)
    .describe(
      "An orchestrator that is silent for so long loses its partitions to others; one whose death can be proved loses them at once. Whole seconds.",
    ),
  HOLDFAST_ORCHESTRATOR_CACHE: setting
    .wholeNumber(0, 10_000_000)
    .default(20_000)
    .describe("Idle instances kept in memory; others are replayed when they are needed."),
  HOLDFAST_ORCHESTRATOR_ALWAYS_REPLAY: setting.flag
    .default(false)
    .describe("Replays before every turn: slow, for finding nondeterministic code."),
  HOLDFAST_ORCHESTRATOR_LANE: setting.flag
    .default(true)
    .describe("Work goes straight to live workers and back where it can; `false`: always by the queues."),
  HOLDFAST_ORCHESTRATOR_TURN_LIMIT_MS: setting
    .wholeNumber(100, 600_000)
    .default(10_000)
    .describe("A turn that runs longer is stopped with its process, and its instance is set aside."),
  HOLDFAST_ORCHESTRATOR_HISTORY_LIMIT: setting
    .wholeNumber(100, 10_000_000)
    .default(hardLimitEvents)
    .describe(
      "Events of one execution of an instance; it fails with `history_too_long` when it has so many.",
    ),
  HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS: setting.text
    .optional()
    .describe(
      "File with the keys of capabilities, one a line: workers must send a capability, which only an orchestrator can make, with every report. Without keys every report is accepted. See docs/security.md.",
    ),
  HOLDFAST_ORCHESTRATOR_CAPABILITIES: setting
    .oneOf("require", "accept")
    .default("require")
    .describe(
      "`require`: with keys, reports without a capability are refused. `accept`: they are accepted and counted, for the time of an upgrade.",
    ),
  HOLDFAST_ORCHESTRATOR_FAULT: z
    .string()
    .optional()
    .describe("For fault tests: `point:count` kills the process there."),
};
