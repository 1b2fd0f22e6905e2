import type { FaultPoint } from "../../../services/orchestrator/fault-points.ts";
import type { WorkerFaultPoint } from "../../../services/worker/fault-points.ts";
import type { App } from "../../definitions/index.ts";
import type { Instant } from "../clock/instant.ts";
import type { BusFaults } from "../memory/index.ts";

/** Options of a test's engine. */
export interface TestEnvironmentOptions {
  /** The value of `collectApp`, or the module itself: `import * as app from "./app.ts"`. */
  app: App | Readonly<Record<string, unknown>>;
  /** Determines all randomness: the same seed gives the same run. Default 1. */
  seed?: number;
  /**
   * Undefined: no server, everything in memory. Otherwise the same test runs on a real NATS server:
   * `embedded` starts one, `container` (or `container:<image>`) starts one with testcontainers, and any other text is the address of a
   * running one. Nothing is left on it.
   */
  nats?: "embedded" | "container" | (string & {}) | undefined;
  /** When the test's calendar begins. Default: some time in 2023 in memory, now on a server. */
  startsAt?: Instant;
  /** Time zone for `startsAt` and `skipTo` if they name none. Default UTC. */
  timeZone?: string;
  /** Number of workers; one that is killed is replaced. Default 2. */
  workers?: number;
  /** Number of orchestrators; one that is killed is replaced. Default 1. */
  orchestrators?: number;
  /**
   * Every turn begins with a replay of the whole history, which finds nondeterministic code at once. Default
   * true.
   */
  alwaysReplay?: boolean;
  /**
   * `some`: messages are randomly lost, repeated and delayed, as on a bad day. Default `none`. In memory
   * only.
   */
  faults?: "none" | "some" | Partial<BusFaults>;
}

/** Points in a worker's or orchestrator's work at which a test can kill it. */
export type FaultPointName =
  | "before-claim"
  | "after-claim"
  | "after-init"
  | "after-activation"
  | "after-call"
  | "after-call-report"
  | "after-activity"
  | "after-activity-report"
  | "before-close"
  | "after-close"
  | "before-commit"
  | "after-commit"
  | "amid-effects"
  | "after-effects"
  | "between-executions";

export const faultPoints: Readonly<Record<FaultPointName, FaultPoint | WorkerFaultPoint>> = {
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
};
