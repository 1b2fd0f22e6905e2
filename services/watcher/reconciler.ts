/**
 * Compares the sessions that the register shows as held with the leases, a share of them each time. It finds
 * losses whose expiry was missed (S5).
 */
import type { SessionRecord } from "../../schemas/index.ts";
import { leaseKeys } from "../../shared/bus/index.ts";
import { judge, mayBeHeld, type Suspect } from "../../shared/sessions/index.ts";
import type { WatcherDeps } from "./deps.ts";
import { eachAtOnce } from "./each-at-once.ts";
import type { Purges } from "./purge.ts";
import { isAttachedAgain, reportLoss } from "./report-loss.ts";

/** Leases read per round: bounds the cost, whatever the number of sessions. */
const mostLooks = 1000;
const looksAtOnce = 32;
/** Limits repeated reports to an instance whose orchestrator is away. */
const reportAgainMs = 600_000;

export class Reconciler {
  readonly #deps: WatcherDeps;
  readonly #purges: Purges;
  #suspects = new Map<string, Suspect>();
  readonly #reported = new Map<string, number>();
  /** The session at which the last round ended. */
  #after = "";

  constructor(deps: WatcherDeps, purges: Purges) {
    this.#deps = deps;
    this.#purges = purges;
  }

  async round(): Promise<void> {
    const { grace, acting } = this.#deps;
    if (grace.leftMs() > 0 || !acting()) return;
    const suspects = new Map<string, Suspect>();
    const records = await this.#nextShare(suspects);
    await eachAtOnce(records, looksAtOnce, (record) => this.#look(record, suspects));
    this.#suspects = suspects;
    this.#forgetReported();
    await this.#purges.purgeOwed();
  }

  /** Keeps suspicions about sessions that this round does not look at. */
  async #nextShare(suspects: Map<string, Suspect>): Promise<SessionRecord[]> {
    const all: SessionRecord[] = [];
    for await (const { value } of this.#deps.registers.sessions.entries()) {
      if (mayBeHeld(value) && value.attachment > 0) all.push(value);
    }
    if (all.length <= mostLooks) return all;
    all.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
    const later = all.findIndex(({ sessionId }) => sessionId > this.#after);
    const from = later === -1 ? 0 : later;
    const share = all.slice(from, from + mostLooks);
    this.#after = share.at(-1)?.sessionId ?? "";
    const looked = new Set(share.map(({ sessionId }) => sessionId as string));
    for (const [sessionId, suspect] of this.#suspects) {
      if (!looked.has(sessionId)) suspects.set(sessionId, suspect);
    }
    return share;
  }

  async #look(record: SessionRecord, suspects: Map<string, Suspect>): Promise<void> {
    const { registers, runtime, config, counters, acting, grace } = this.#deps;
    const { sessionId, attachment } = record;
    const key = leaseKeys.session(sessionId, attachment);
    if (this.#reported.has(key)) return;
    // In this order: a worker has the lease before it removes the claim.
    const isAsked = await this.#isAsked(record);
    const lease = await registers.leases.look(key);
    const now = runtime.clock.monotonic();
    const before = this.#suspects.get(sessionId);
    const verdict = judge(record, { isAsked, lease }, before, now, 2 * config.reconcileEveryMs);
    if (verdict.kind === "suspect") suspects.set(sessionId, verdict.suspect);
    if (verdict.kind !== "lost") return;
    if (!acting() || grace.leftMs(record.leaseTtlMs) > 0) return;
    if (await isAttachedAgain(this.#deps, sessionId, attachment)) return;
    const expiredAt = lease.kind === "expired" ? lease.at : undefined;
    const outcome = await reportLoss(this.#deps, record, { attachment, detail: verdict.why, expiredAt });
    this.#reported.set(key, now);
    if (outcome === "reported") counters.reconciled++;
    await this.#purges.afterLoss(record, attachment);
  }

  async #isAsked({ phase, type, sessionId }: SessionRecord): Promise<boolean> {
    if (phase !== "opening") return false;
    const { bus, names } = this.#deps;
    const claim = await bus.last(names.claimsStream, names.claim(type, sessionId), { leader: true });
    return claim !== undefined;
  }

  #forgetReported(): void {
    const now = this.#deps.runtime.clock.monotonic();
    for (const [key, at] of this.#reported) if (now - at > reportAgainMs) this.#reported.delete(key);
  }
}
