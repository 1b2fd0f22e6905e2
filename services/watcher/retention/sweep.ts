import { announceFault } from "../../../shared/runtime/index.ts";
import type { Histories, WatcherDeps } from "../deps.ts";
import { ArchiveHistories } from "./archive-histories.ts";
import { BuryJunk } from "./bury-junk.ts";
import { ForgetSessions } from "./forget-sessions.ts";
import { ForgetWorkers } from "./forget-workers.ts";
import { ReadBack } from "./read-back.ts";
import { RemoveInstances } from "./remove-instances.ts";
import type { RetentionStep } from "./step.ts";

/**
 * Cleans up after everything that has ended: each round is bounded, and the failure of one step does not stop
 * the others.
 */
export class Sweep {
  readonly #deps: WatcherDeps;
  readonly #steps: RetentionStep[];

  constructor(deps: WatcherDeps, histories: Histories) {
    this.#deps = deps;
    this.#steps = [
      new ArchiveHistories(deps, histories),
      new ForgetSessions(deps),
      new ForgetWorkers(deps),
      new RemoveInstances(deps, histories),
      new ReadBack(deps),
      new BuryJunk(deps, histories),
    ];
  }

  async round(): Promise<void> {
    const { acting, grace } = this.#deps;
    // Right after an outage no process has registered anew yet: everything looks dead.
    if (grace.leftMs() > 0) return;
    for (const step of this.#steps) if (acting()) await this.#run(step);
  }

  async #run(step: RetentionStep): Promise<void> {
    const { runtime, config } = this.#deps;
    const startedAt = runtime.clock.monotonic();
    try {
      const done = await step.run(config.sweepLimit);
      const ms = runtime.clock.monotonic() - startedAt;
      if (done > 0) runtime.announce({ kind: "retention.swept", step: step.name, done, ms });
    } catch (error) {
      announceFault(runtime, `watcher.retention.${step.name}`, error, { code: "sweep_failed" });
    }
  }
}
