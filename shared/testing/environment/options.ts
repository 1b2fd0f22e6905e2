import type { App } from "../../definitions/index.ts";
import type { BusFaults } from "../memory/index.ts";

/** What a test says of the engine it runs. */
export interface TestEnvironmentOptions {
  /** What `collectApp` returns, or the module itself: `import * as app from "./app.ts"`. */
  app: App | Readonly<Record<string, unknown>>;
  /** Everything left to chance follows from it: the same seed, the same run. Default 1. */
  seed?: number;
  /** Workers at any time; one that is killed is replaced. Default 2. */
  workers?: number;
  /** Orchestrators at any time; one that is killed is replaced. Default 1. */
  orchestrators?: number;
  /**
   * Every turn begins with a replay of the whole history, so that code which does something else the second time is
   * found at once. Default true.
   */
  alwaysReplay?: boolean;
  /** `some`: messages are lost, doubled and late by the dice, as on a bad day. Default `none`. */
  faults?: "none" | "some" | Partial<BusFaults>;
}

/** Places of a worker's or orchestrator's life where a test can let it die. */
export const faultPoints = {
  "before-claim": "claim.before_lease",
  "after-claim": "claim.after_lease",
  "after-init": "init.before_told",
  "after-activation": "init.after_told",
  "after-call": "call.before_report",
  "after-call-report": "call.after_report",
  "after-activity": "activity.before_report",
  "after-activity-report": "activity.after_report",
  "before-close": "close.before_release",
  "after-close": "close.after_release",
  "before-commit": "turn.before_append",
  "after-commit": "turn.after_append",
  "amid-effects": "effects.half_published",
  "after-effects": "turn.after_effects",
  "between-executions": "continue.between_executions",
} as const;

/** The name of such a place. */
export type FaultPointName = keyof typeof faultPoints;
