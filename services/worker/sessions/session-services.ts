import type { Hosts } from "../hosts/index.ts";
import type { Slots } from "../slots.ts";
import type { Checkpoints } from "./holding/checkpoints.ts";
import type { SessionReporter } from "./holding/session-reporter.ts";
import type { PoolFeeds } from "./pools/pool-feeds.ts";
import type { SessionDeps, SessionTiming } from "./session-deps.ts";

/** Services that all attachments of a worker share. */
export interface SessionServices {
  readonly deps: SessionDeps;
  readonly timing: SessionTiming;
  /** Slots for calls, over all sessions; plain activities have their own (S10). */
  readonly slots: Slots;
  readonly hosts: Hosts;
  readonly reporter: SessionReporter;
  readonly checkpoints: Checkpoints;
  readonly pools: PoolFeeds;
}
