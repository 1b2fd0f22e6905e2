/**
 * Work that was sent to an owner and that nobody will take. Only for owners that are gone: an incarnation that left
 * never comes back (S3), while one that is merely slow may attach again (S14), and its new work lies on the same subject.
 */
import type { SessionRecord } from "../../schemas/index.ts";
import type { WatcherDeps } from "./deps.ts";

interface Debt {
  workerId: string;
  sessionId: string;
  attachment: number;
  /** Monotonic. */
  since: number;
}

export class Purges {
  readonly #deps: WatcherDeps;
  /** Owners still registered when their session was lost; seen to again with each reconcile, for a while. */
  readonly #owed = new Map<string, Debt>();

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async afterLoss(record: SessionRecord, attachment: number): Promise<void> {
    const { workerId, sessionId } = record;
    if (workerId === undefined || record.attachment !== attachment) return;
    const debt = { workerId, sessionId, attachment, since: this.#deps.runtime.clock.monotonic() };
    if ((await this.#pay(debt)) === "later") this.#owed.set(this.#subject(debt), debt);
  }

  async payOwed(): Promise<void> {
    for (const [subject, debt] of [...this.#owed]) {
      if (await this.#isForgiven(debt)) this.#owed.delete(subject);
      else if ((await this.#pay(debt)) === "paid") this.#owed.delete(subject);
    }
  }

  async #pay(debt: Debt): Promise<"paid" | "later"> {
    const { bus, names, registers, runtime, counters } = this.#deps;
    const { workerId, sessionId } = debt;
    if (await registers.workers.bucket.get(workerId, { leader: true })) return "later";
    const messages = await bus.purge(names.sessionsStream, this.#subject(debt));
    if (messages > 0) {
      counters.purged += messages;
      runtime.announce({ kind: "work.purged", workerId, sessionId, messages });
    }
    return "paid";
  }

  /** It holds the session again; or it lives on, and what it leaves behind one day is the sweep's. */
  async #isForgiven({ workerId, sessionId, attachment, since }: Debt): Promise<boolean> {
    const { registers, runtime, config } = this.#deps;
    if (runtime.clock.monotonic() - since > 2 * config.deadAfterMs) return true;
    const record = (await registers.sessions.get(sessionId, { leader: true }))?.value;
    return record?.workerId === workerId && record.attachment !== attachment;
  }

  #subject({ workerId, sessionId }: Debt): string {
    return this.#deps.names.sessionWork(workerId, sessionId);
  }
}
