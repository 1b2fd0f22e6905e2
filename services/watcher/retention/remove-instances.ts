/** Ended instances are forgotten whole: history, blobs, streams of output, what still waits for them; the summary last. */
import type { InstanceSummary } from "../../../schemas/index.ts";
import { bucketSubject } from "../../../shared/bus/index.ts";
import type { Histories, WatcherDeps } from "../deps.ts";
import { BlobFolders, checkpointsOf, payloadsOf } from "./blob-folders.ts";
import { endedBefore } from "./ended.ts";
import type { RetentionStep } from "./step.ts";

/** Reading all summaries is not for every sweep. */
const everyMs = 600_000;

export class RemoveInstances implements RetentionStep {
  readonly name = "instances";
  readonly #deps: WatcherDeps;
  readonly #histories: Histories;
  #nextAt = 0;

  constructor(deps: WatcherDeps, histories: Histories) {
    this.#deps = deps;
    this.#histories = histories;
  }

  async run(limit: number): Promise<number> {
    const { registers, runtime, config, counters, acting } = this.#deps;
    const { clock } = runtime;
    if (config.retainForMs === 0 || clock.monotonic() < this.#nextAt) return 0;
    const due: InstanceSummary[] = [];
    for await (const { value } of registers.instances.entries()) {
      if (endedBefore(value, clock.now(), config.retainForMs)) due.push(value);
      if (due.length >= limit) break;
    }
    const blobs = new BlobFolders(this.#deps.bus.blobs);
    let done = 0;
    for (const summary of due) {
      if (!acting()) break;
      await this.#remove(summary, blobs);
      done++;
    }
    counters.removedInstances += done;
    // As long as there is much to do, the next sweep goes on with it.
    if (done < limit) this.#nextAt = clock.monotonic() + Math.min(everyMs, config.retainForMs);
    return done;
  }

  async #remove({ instanceId, sessions }: InstanceSummary, blobs: BlobFolders): Promise<void> {
    const { bus, names, registers } = this.#deps;
    for (const sessionId of sessions ?? []) await blobs.delete(checkpointsOf(sessionId));
    await blobs.delete(payloadsOf(instanceId));
    await bus.purge(names.inboxStream, names.timersOf(instanceId));
    await bus.purge(names.inboxStream, names.inboxOf(instanceId));
    await bus.purge(names.streamsStream, names.streamsOf(instanceId));
    await this.#histories.remove(instanceId);
    // Deleted for those who watch, then gone for good: this bucket's tombstones would stay for ever.
    const { bucket } = registers.instances;
    await bucket.delete(instanceId);
    await bus.purge(bucket.stream, bucketSubject(bucket.name, instanceId));
  }
}
