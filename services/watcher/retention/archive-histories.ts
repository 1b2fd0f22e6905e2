/**
 * Moves histories of ended instances out of their own streams, so that the number of streams follows the
 * running work.
 */
import { isFault } from "../../../shared/errors/index.ts";
import { announceFault } from "../../../shared/runtime/index.ts";
import type { Histories, WatcherDeps } from "../deps.ts";
import { endedBefore } from "./ended.ts";
import type { RetentionStep } from "./step.ts";

export class ArchiveHistories implements RetentionStep {
  readonly name = "archive";
  readonly #deps: WatcherDeps;
  readonly #histories: Histories;

  constructor(deps: WatcherDeps, histories: Histories) {
    this.#deps = deps;
    this.#histories = histories;
  }

  async run(limit: number): Promise<number> {
    const { bus, names, counters, acting } = this.#deps;
    let done = 0;
    for (const stream of await bus.streamNames(names.ownHistories)) {
      if (done >= limit || !acting()) break;
      const instanceId = names.parseOwnHistoryStream(stream);
      if (instanceId === undefined || !(await this.#isDue(instanceId))) continue;
      if (await this.#archive(instanceId)) done++;
    }
    counters.archived += done;
    return done;
  }

  async #isDue(instanceId: string): Promise<boolean> {
    const { registers, runtime, config } = this.#deps;
    const summary = await registers.instances.get(instanceId);
    return summary !== undefined && endedBefore(summary.value, runtime.clock.now(), config.archiveAfterMs);
  }

  async #archive(instanceId: string): Promise<boolean> {
    const { bus, runtime } = this.#deps;
    try {
      await this.#histories.archive(instanceId);
      return true;
    } catch (error) {
      // The summary says ended and the history does not: the history is right, and the summary will follow.
      if (isFault(error, "contract") && error.code === "instance_running") return false;
      if (!bus.connected()) throw error;
      announceFault(runtime, "watcher.retention.archive", error, {
        otherwise: "sweep_failed",
        about: `the history of ${instanceId} stays in a stream of its own`,
      });
      return false; // the others are moved all the same
    }
  }
}
