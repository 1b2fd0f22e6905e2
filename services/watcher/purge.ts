/**
 * Purges work that was sent to a holder and that no worker will take. Only for workers that are gone: an
 * incarnation that left never comes back (S3), while one that is merely slow may attach again (S14), and its
 * new work is on the same subject.
 */
import type { SessionRecord } from "../../schemas/index.ts";
import type { WatcherDeps } from "./deps.ts";

interface OwedPurge {
  workerId: string;
  sessionId: string;
  attachment: number;
  /** Monotonic time of the loss. */
  since: number;
}

/**
 * A turn that began before the instance learned of the loss may still send work; after this time it no longer
 * can.
 */
const lateMs = 5_000;

export class Purges {
  readonly #deps: WatcherDeps;
  /**
   * Losses whose holder was still registered, or whose subject may have received work after the purge;
   * checked with each reconcile.
   */
  readonly #owed = new Map<string, OwedPurge>();

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async afterLoss(record: SessionRecord, attachment: number): Promise<void> {
    const { sessionId } = record;
    // The entry of a session that is over names its last holder among its owners only.
    const workerId = record.workerId ?? record.owners?.at(-1)?.workerId;
    if (workerId === undefined || record.attachment !== attachment) return;
    const since = this.#deps.runtime.clock.monotonic();
    const owedPurge: OwedPurge = { workerId, sessionId, attachment, since };
    this.#owed.set(this.#subject(owedPurge), owedPurge);
    await this.#purge(owedPurge);
  }

  async purgeOwed(): Promise<void> {
    for (const [subject, owedPurge] of [...this.#owed]) {
      const age = this.#deps.runtime.clock.monotonic() - owedPurge.since;
      const done =
        (await this.#isObsolete(owedPurge, age)) || ((await this.#purge(owedPurge)) && age >= lateMs);
      if (done) this.#owed.delete(subject);
    }
  }

  /** Returns false while the holder is still registered. */
  async #purge(owedPurge: OwedPurge): Promise<boolean> {
    const { bus, names, registers, runtime, counters } = this.#deps;
    const { workerId, sessionId } = owedPurge;
    const subject = this.#subject(owedPurge);
    // Read the last sequence first: work sent later, to a holder that came back while this watcher was
    // paused, stays.
    const last = await bus.last(names.sessionsStream, subject, { leader: true });
    if (await registers.workers.bucket.get(workerId, { leader: true })) return false;
    const messages = last ? await bus.purge(names.sessionsStream, subject, last.seq) : 0;
    if (messages > 0) {
      counters.purged += messages;
      runtime.announce({ kind: "work.purged", workerId, sessionId, messages });
    }
    return true;
  }

  /**
   * True if the worker holds the session again, or is still alive long after; the sweep then removes what it
   * may leave behind.
   */
  async #isObsolete({ workerId, sessionId, attachment }: OwedPurge, age: number): Promise<boolean> {
    const { registers, config } = this.#deps;
    if (age > 2 * config.deadAfterMs) return true;
    const record = (await registers.sessions.get(sessionId, { leader: true }))?.value;
    return record?.workerId === workerId && record.attachment !== attachment;
  }

  #subject({ workerId, sessionId }: OwedPurge): string {
    return this.#deps.names.sessionWork(workerId, sessionId);
  }
}
