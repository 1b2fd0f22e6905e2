/** Removes ended sessions from the register, together with their checkpoints and named blobs. */
import type { SessionRecord } from "../../../schemas/index.ts";
import { leaseKeys, type TypedEntry } from "../../../shared/bus/index.ts";
import { tombstoneTtlMs } from "../../../shared/leases/index.ts";
import { overMark } from "../../../shared/sessions/index.ts";
import type { WatcherDeps } from "../deps.ts";
import { eachAtOnce } from "../each-at-once.ts";
import { BlobFolders, foldersOf } from "./blob-folders.ts";
import { endedBefore } from "./ended.ts";
import type { RetentionStep } from "./step.ts";

/** The marker of a removed entry outlives the tombstone of the session's lease (WATCHER-3, `Expiries`). */
const markerMs = tombstoneTtlMs + 60_000;
const asksAtOnce = 8;

export class ForgetSessions implements RetentionStep {
  readonly name = "sessions";
  readonly #deps: WatcherDeps;

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async run(limit: number): Promise<number> {
    const { bus, registers, runtime, config, counters, acting } = this.#deps;
    const quietSince = runtime.clock.now() - config.archiveAfterMs;
    const quiet: TypedEntry<SessionRecord>[] = [];
    for await (const entry of registers.sessions.entries()) {
      if (entry.value.updatedAt <= quietSince) quiet.push(entry);
    }
    const blobs = new BlobFolders(bus.blobs);
    let done = 0;
    await eachAtOnce(quiet, asksAtOnce, async ({ key, revision, value }) => {
      if (done >= limit || !acting() || !(await this.#isOver(value))) return;
      await blobs.read();
      // The id was opened anew meanwhile: its blobs do not belong to the ended session.
      if ((await registers.sessions.get(key, { leader: true }))?.revision !== revision) return;
      for (const folder of foldersOf(key)) await blobs.delete(folder);
      const headers = overMark(value);
      const outcome = await registers.sessions.delete(key, { revision, ttlMs: markerMs, headers });
      if (outcome.kind === "written") done++;
    });
    counters.removedSessions += done;
    return done;
  }

  async #isOver(record: SessionRecord): Promise<boolean> {
    const { runtime, config, registers } = this.#deps;
    const now = runtime.clock.now();
    if (record.phase !== "closed" && record.phase !== "failed") {
      // A session does not outlive its instance, whatever the register says.
      const instance = await registers.instances.get(record.instanceId);
      if (!instance || !endedBefore(instance.value, now, config.archiveAfterMs)) return false;
    }
    // While a worker holds the lease, its expiry may still come, and the watcher would find no instance to
    // report to.
    const lease = await registers.leases.look(leaseKeys.session(record.sessionId, record.attachment));
    return lease.kind !== "held";
  }
}
