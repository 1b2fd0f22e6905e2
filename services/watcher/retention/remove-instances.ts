/**
 * Ended instances are forgotten whole: history, blobs, streams of output, what still waits for them; the summary last.
 * A watcher may be paused anywhere, another one do its work, and the id be used anew: so it looks at everything first,
 * then makes sure that the instance is still the one that ended, then removes what it saw and nothing else.
 */
import type { InstanceSummary } from "../../../schemas/index.ts";
import { bucketSubject, type TypedEntry } from "../../../shared/bus/index.ts";
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
    const due: TypedEntry<InstanceSummary>[] = [];
    for await (const entry of registers.instances.entries()) {
      if (endedBefore(entry.value, clock.now(), config.retainForMs)) due.push(entry);
      if (due.length >= limit) break;
    }
    const blobs = new BlobFolders(this.#deps.bus.blobs);
    let done = 0;
    for (const entry of due) {
      if (!acting()) break;
      if (await this.#remove(entry, blobs)) done++;
    }
    counters.removedInstances += done;
    // As long as there is much to do, the next sweep goes on with it.
    if (due.length < limit) this.#nextAt = clock.monotonic() + Math.min(everyMs, config.retainForMs);
    return done;
  }

  /** False where it is not the one that ended any more. */
  async #remove({ value, revision }: TypedEntry<InstanceSummary>, blobs: BlobFolders): Promise<boolean> {
    const { bus, names, registers } = this.#deps;
    const { instanceId, sessions = [] } = value;
    const { bucket } = registers.instances;
    await blobs.read();
    const lastSeqOf = async (stream: string) => (await bus.streamInfo(stream))?.lastSeq ?? 0;
    const [inboxSeq, asideSeq, streamsSeq, history] = await Promise.all([
      lastSeqOf(names.inboxStream),
      lastSeqOf(names.asideStream),
      lastSeqOf(names.streamsStream),
      this.#histories.look(instanceId),
    ]);
    if ((await bucket.get(instanceId, { leader: true }))?.revision !== revision) return false;
    for (const sessionId of sessions) await this.#forgetCheckpoints(instanceId, sessionId, blobs);
    await blobs.delete(payloadsOf(instanceId));
    await bus.purge(names.inboxStream, names.timersOf(instanceId), inboxSeq);
    await bus.purge(names.inboxStream, names.inboxOf(instanceId), inboxSeq);
    await bus.purge(names.asideStream, names.aside(instanceId), asideSeq);
    await bus.purge(names.streamsStream, names.streamsOf(instanceId), streamsSeq);
    await this.#histories.remove(history);
    // Deleted for those who watch, then gone for good: this bucket's tombstones would stay for ever.
    const deleted = await bucket.delete(instanceId, { revision });
    if (deleted.kind !== "written") return false;
    await bus.purge(bucket.stream, bucketSubject(bucket.name, instanceId), deleted.revision);
    return true;
  }

  /** The id of a session that is over may be another instance's by now. */
  async #forgetCheckpoints(instanceId: string, sessionId: string, blobs: BlobFolders): Promise<void> {
    const record = await this.#deps.registers.sessions.get(sessionId, { leader: true });
    if (record && record.value.instanceId !== instanceId) return;
    await blobs.delete(checkpointsOf(sessionId));
  }
}
