/**
 * Work that was sent to an owner and that nobody will take. Only for owners that are gone: an incarnation that left
 * never comes back (S3), while one that is merely slow may attach again (S14), and its new work lies on the same subject.
 */
import type { SessionRecord } from "../../schemas/index.ts";
import type { WatcherDeps } from "./deps.ts";

/** Owners that were still registered when their session was lost; seen to again with each reconcile. */
const mostOwed = 10_000;

export class Purges {
  readonly #deps: WatcherDeps;
  readonly #owed = new Map<string, { workerId: string; sessionId: string }>();

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async afterLoss(record: SessionRecord, attachment: number): Promise<void> {
    const { workerId, sessionId } = record;
    if (workerId === undefined || record.attachment !== attachment) return;
    await this.#purge({ workerId, sessionId });
  }

  async payOwed(): Promise<void> {
    for (const owed of [...this.#owed.values()]) await this.#purge(owed);
  }

  async #purge(work: { workerId: string; sessionId: string }): Promise<void> {
    const { bus, names, registers, runtime, counters } = this.#deps;
    const { workerId, sessionId } = work;
    const subject = names.sessionWork(workerId, sessionId);
    if (await registers.workers.bucket.get(workerId, { leader: true })) {
      if (this.#owed.size < mostOwed) this.#owed.set(subject, work);
      return;
    }
    const messages = await bus.purge(names.sessionsStream, subject);
    this.#owed.delete(subject);
    if (messages === 0) return;
    counters.purged += messages;
    runtime.announce({ kind: "work.purged", workerId, sessionId, messages });
  }
}
