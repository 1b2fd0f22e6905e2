/**
 * Removes ended instances whole: history, blobs, output streams, waiting messages; the summary last. A
 * watcher may be paused anywhere, another watcher may do its work, and the id may be used anew. So the
 * watcher first reads everything, then checks that the instance is still the one that ended, then removes
 * only what it read. Ids that were signalled and never started are removed in the same way.
 */
import type { InstanceSummary } from "../../../schemas/index.ts";
import { bucketSubject, type TypedEntry } from "../../../shared/bus/index.ts";
import type { Histories, WatcherDeps } from "../deps.ts";
import { BlobFolders, foldersOf, payloadsOf } from "./blob-folders.ts";
import { endedBefore, unstartedSince } from "./ended.ts";
import type { RetentionStep } from "./step.ts";

/** Reading all summaries is too costly for every sweep. */
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
      const { retainForMs } = config;
      if (
        endedBefore(entry.value, clock.now(), retainForMs) ||
        unstartedSince(entry.value, clock.now(), retainForMs)
      )
        due.push(entry);
      if (due.length >= limit) break;
    }
    const blobs = new BlobFolders(this.#deps.bus.blobs);
    let done = 0;
    for (const entry of due) {
      if (!acting()) break;
      const over = entry.value.status !== "pending";
      if (await (over ? this.#remove(entry, blobs) : this.#forgetUnstarted(entry, blobs))) done++;
    }
    counters.removedInstances += done;
    // While there is much to remove, the next sweep continues with it.
    if (due.length < limit) this.#nextAt = clock.monotonic() + Math.min(everyMs, config.retainForMs);
    return done;
  }

  /** Returns false if the id no longer belongs to the instance that ended. */
  async #remove({ value, revision }: TypedEntry<InstanceSummary>, blobs: BlobFolders): Promise<boolean> {
    const { bus, names, registers } = this.#deps;
    const { instanceId, sessions = [] } = value;
    const { bucket } = registers.instances;
    await blobs.read();
    const lastSeqOf = async (stream: string) => (await bus.streamInfo(stream))?.lastSeq ?? 0;
    const [inboxSeq, timersSeq, asideSeq, streamsSeq, history] = await Promise.all([
      lastSeqOf(names.inboxStream),
      lastSeqOf(names.timersStream),
      lastSeqOf(names.asideStream),
      lastSeqOf(names.streamsStream),
      this.#histories.look(instanceId),
    ]);
    if ((await bucket.get(instanceId, { leader: true }))?.revision !== revision) return false;
    for (const sessionId of sessions) await this.#forgetBlobs(instanceId, sessionId, blobs);
    await blobs.delete(payloadsOf(instanceId));
    await bus.purge(names.timersStream, names.timersOf(instanceId), timersSeq);
    await bus.purge(names.timersStream, names.firedOf(instanceId), timersSeq);
    await bus.purge(names.inboxStream, names.inboxOf(instanceId), inboxSeq);
    await bus.purge(names.asideStream, names.aside(instanceId), asideSeq);
    await bus.purge(names.streamsStream, names.streamsOf(instanceId), streamsSeq);
    await this.#histories.remove(history);
    return this.#removeSummary(instanceId, revision);
  }

  /**
   * Removes an instance that was never started. A start under limits may wait in its inbox: then all stays. Its
   * start may be on its way at this moment: so its inbox messages stay, the fence of its history decides whether
   * it is still unstarted, and only large values older than its last signal are deleted.
   */
  async #forgetUnstarted(
    { value, revision }: TypedEntry<InstanceSummary>,
    blobs: BlobFolders,
  ): Promise<boolean> {
    const { instanceId, updatedAt } = value;
    const { bus, names } = this.#deps;
    await blobs.read();
    if ((await bus.read(names.inboxStream, names.inboxOf(instanceId), 1, 1))?.length) return false;
    const history = await this.#histories.look(instanceId);
    const { bucket } = this.#deps.registers.instances;
    if ((await bucket.get(instanceId, { leader: true }))?.revision !== revision) return false;
    if (!(await this.#histories.forgetUnstarted(history))) return false;
    await blobs.delete(payloadsOf(instanceId), updatedAt);
    return this.#removeSummary(instanceId, revision);
  }

  /**
   * Deletes the key for watchers of the bucket, then purges it: this bucket's tombstones would stay for ever.
   */
  async #removeSummary(instanceId: string, revision: number): Promise<boolean> {
    const { bus, registers } = this.#deps;
    const { bucket } = registers.instances;
    const deleted = await bucket.delete(instanceId, { revision });
    if (deleted.kind !== "written") return false;
    await bus.purge(bucket.stream, bucketSubject(bucket.name, instanceId), deleted.revision);
    return true;
  }

  /** The id of an ended session may belong to another instance by now. */
  async #forgetBlobs(instanceId: string, sessionId: string, blobs: BlobFolders): Promise<void> {
    const record = await this.#deps.registers.sessions.get(sessionId, { leader: true });
    if (record && record.value.instanceId !== instanceId) return;
    for (const folder of foldersOf(sessionId)) await blobs.delete(folder);
  }
}
