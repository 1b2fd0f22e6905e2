/**
 * The checker: reads the streams of an installation, and the users' journal if there is one, and proves or
 * refutes each law (`laws.ts`). It asks no service, trusts nothing the engine reports about itself, and
 * writes nothing.
 *
 * In memory it holds one page of one history, a number for each history of one stream, what each live
 * instance waits for, and the leases that are held.
 */

import { needsNewerVersion } from "../../schemas/index.ts";
import { type Bus, installedNames, type Subjects } from "../bus/index.ts";
import type { App } from "../definitions/index.ts";
import { isFault } from "../errors/index.ts";
import type { FoundHistory } from "../history/index.ts";
import { isEnded } from "../replay/index.ts";
import { type Clock, sleep, systemClock } from "../runtime/index.ts";
import { checkBlobs } from "./blobs.ts";
import { type Closing, type Folded, Folding } from "./fold.ts";
import { Installation } from "./installation.ts";
import { Journal, type JournalEntry } from "./journal.ts";
import { AgainstJournal, checkSessionJournal } from "./journal-laws.ts";
import type { LawId } from "./laws.ts";
import type { LeaseLog } from "./lease-log.ts";
import { checkLeases } from "./leases.ts";
import { instanceIds } from "./list-instances.ts";
import { endOf } from "./live/find-keys.ts";
import { checkInstances, type LiveBounds, type LiveInstance, liveInstance } from "./live/instances.ts";
import { checkOrphans } from "./orphans.ts";
import { checkQuiet } from "./quiet-installation.ts";
import { checkReadModels } from "./read-models.ts";
import { checkReplay } from "./replays.ts";
import { Findings, type Report } from "./report.ts";

export interface VerifyOptions extends Partial<LiveBounds> {
  bus: Bus;
  names: Subjects;
  clock?: Clock;
  /** Check only this instance. */
  instanceId?: string;
  /** Epoch ms: histories that ended before this time are left out. */
  since?: number;
  /** The users' journal (`journal.ts`). */
  journal?: Iterable<JournalEntry>;
  /** The application, replayed over every history to see whether it decides the same (I5). */
  app?: App;
  /** The lease log recorded during the run. */
  leases?: LeaseLog;
  /** How many sessions a worker of the run may hold at most; needs `leases` (I14). */
  sessionCap?: number;
  /** How often rare branches were reached in the run; a branch with zero is reported (I18). */
  branches?: Readonly<Record<string, number>>;
  /**
   * True if nothing should be going on any more: queues must be empty (I9) and no instance may be running
   * (I17).
   */
  quiet?: boolean;
  /** How soon after its expiry a loss must be recorded (I8). Undefined: only measured. */
  lossMs?: number;
  /** How long leftovers may still wait to be cleaned up (I15). Infinity: not checked. */
  orphanMs?: number;
  /** Called now and then with the progress. */
  onProgress?: (text: string) => void;
}

const defaultBounds: LiveBounds = { settleMs: 1000, looks: 3, overdueMs: 60_000, cancelMs: 60_000 };
const defaultOrphanMs = 120_000;
const historiesAtOnce = 8;

export async function verify(options: VerifyOptions): Promise<Report> {
  const { bus, clock = systemClock } = options;
  const names = await installedNames(bus, options.names);
  const findings = new Findings();
  const installation = await Installation.open({ bus, names, clock });
  if (!installation) {
    findings.note("there is no installation under this prefix: nothing was read");
    return findings.report();
  }
  await new Verification(installation, options, findings).run();
  return findings.report();
}

class Verification {
  readonly #installation: Installation;
  readonly #options: VerifyOptions;
  readonly #findings: Findings;
  readonly #bounds: LiveBounds;
  readonly #journal: Journal | undefined;
  readonly #live = new Map<string, LiveInstance>();
  /** Kept only where leases were followed. */
  readonly #closings: Closing[] = [];
  #now = 0;

  constructor(installation: Installation, options: VerifyOptions, findings: Findings) {
    this.#installation = installation;
    this.#options = options;
    this.#findings = findings;
    const { settleMs, looks, overdueMs, cancelMs } = options;
    const given = { settleMs, looks, overdueMs, cancelMs };
    this.#bounds = {
      ...defaultBounds,
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    };
    this.#journal = options.journal && new Journal(options.journal);
  }

  async run(): Promise<void> {
    const { instanceId } = this.#options;
    this.#now = await this.#installation.now();
    const seen = new Set(this.#journal?.instanceIds);
    await this.#eachAtOnce(instanceIds(this.#installation, instanceId), async (id) => {
      seen.delete(id);
      await this.#checkInstance(id);
    });
    // I1: an acknowledged start without a history may still be on its way.
    if (instanceId === undefined) for (const id of seen) await this.#checkMissing(id);
    const live = [...this.#live.values()];
    this.#findings.count("live instances", live.length);
    // A single instance that has ended needs no further checks.
    if (instanceId !== undefined && live.length === 0) return;
    await checkInstances(this.#installation, live, this.#bounds, this.#findings);
    if (instanceId === undefined) await this.#checkTheRest(live);
  }

  /** Checks that concern the installation as a whole. */
  async #checkTheRest(live: readonly LiveInstance[]): Promise<void> {
    const { quiet, leases, sessionCap, branches, orphanMs = defaultOrphanMs } = this.#options;
    const findings = this.#findings;
    await checkLeases(this.#installation, this.#live, this.#bounds, findings);
    leases?.check(findings, this.#closings);
    if (sessionCap !== undefined) leases?.checkCap(sessionCap, findings);
    if (this.#journal) checkSessionJournal(this.#journal, findings);
    if (quiet) await checkQuiet(this.#installation, live, this.#bounds, findings);
    if (Number.isFinite(orphanMs))
      await checkOrphans(this.#installation, { orphanMs, looks: this.#bounds.looks }, findings);
    for (const [branch, times] of Object.entries(branches ?? {}))
      if (times === 0) findings.violation("I18", undefined, `${branch} was never reached`);
  }

  async #checkInstance(instanceId: string): Promise<void> {
    const findings = this.#findings;
    // A violation in the present state counts only if it stays: the first look may have fallen into the
    // middle of a turn.
    for (let look = 1; ; look++) {
      const found = await this.#installation.histories.find(instanceId);
      if (!found) return;
      if (look === 1 && (await this.#isLeftOut(instanceId, found))) return this.#findings.count("left out");
      const later: [LawId, string][] = [];
      const folded = await this.#readHistory(instanceId, found, look === 1);
      if (!folded) return;
      const { parked } = await checkReadModels(this.#installation, folded, (law, evidence) =>
        later.push([law, evidence]),
      );
      const moved = (await this.#installation.histories.find(instanceId))?.lastSeq !== found.lastSeq;
      if (later.length > 0 && (moved || look < this.#bounds.looks)) {
        if (look > 20) return findings.note(`${instanceId} moves faster than it can be looked at`);
        await sleep(this.#installation.clock, this.#bounds.settleMs);
        continue;
      }
      for (const [law, evidence] of later) findings.violation(law, instanceId, evidence);
      this.#keepLive(folded, found, parked);
      return;
    }
  }

  /** True if the instance ended before `since`: nothing more can happen to it. */
  async #isLeftOut(instanceId: string, { at }: FoundHistory): Promise<boolean> {
    const { since } = this.#options;
    if (since === undefined || at >= since) return false;
    const end = await endOf(this.#installation, instanceId);
    return end !== "running" && end !== "absent";
  }

  #keepLive(folded: Folded, { lastSeq }: FoundHistory, parked: boolean): void {
    if (isEnded(folded.state)) return;
    const facts = { lastSeq, parked, now: this.#now, bounds: this.#bounds };
    this.#live.set(folded.state.instanceId, liveInstance(folded, facts));
  }

  /**
   * Returns undefined if the history cannot be read. Violations of its own laws are reported on the first
   * look only.
   */
  async #readHistory(instanceId: string, found: FoundHistory, first: boolean): Promise<Folded | undefined> {
    const findings = this.#findings;
    const onViolation = first ? findings.violationsOf(instanceId) : () => undefined;
    const begin = () => {
      const against = this.#journal && new AgainstJournal(this.#journal, instanceId);
      const folding = new Folding(instanceId, onViolation, (commit, execution) =>
        against?.commit(commit, execution),
      );
      return { against, folding };
    };
    let { against, folding } = begin();
    if (found.alsoShared)
      onViolation("I1", "it has a history of its own and another one in the shared stream");
    try {
      for await (const { page, anew } of this.#installation.histories.read(instanceId, found)) {
        if (anew) ({ against, folding } = begin());
        for (const { commit } of page) folding.commit(commit);
        if (first)
          findings.count(
            "values",
            await checkBlobs(this.#installation.bus, folding.takeBlobs(false), onViolation),
          );
      }
    } catch (error) {
      if (!isFault(error, "bug")) throw error;
      if (error.code === needsNewerVersion) findings.note(error.message);
      else onViolation("I3", error.message);
      return undefined;
    }
    const folded = folding.end();
    if (!first) return folded;
    findings.count("values", await checkBlobs(this.#installation.bus, folding.takeBlobs(true), onViolation));
    against?.end(onViolation);
    for (const ms of folding.lateness) findings.sample("timer fired after its time", ms);
    if (this.#options.leases) this.#closings.push(...folded.closings);
    await this.#measure(folded);
    if (this.#options.app)
      await checkReplay(this.#installation, this.#options.app, instanceId, found, findings);
    findings.count("instances");
    findings.count("commits", folded.commits);
    findings.count("events", folded.events);
    return folded;
  }

  async #measure({ state, losses, cancelRequestedAt, endedAt }: Folded): Promise<void> {
    if (cancelRequestedAt !== undefined && endedAt !== undefined)
      this.#findings.sample("end after a cancel", endedAt - cancelRequestedAt);
    const { lossMs } = this.#options;
    for (const { sessionId, attachment, reason, at } of losses) {
      if (reason !== "expired") continue;
      const expiredAt = await this.#installation.expiry(sessionId, attachment);
      if (expiredAt === undefined) continue;
      const ms = at - expiredAt;
      this.#findings.sample("loss recorded after the lease's expiry", ms);
      if (lossMs !== undefined && ms > lossMs)
        this.#findings.violation(
          "I8",
          state.instanceId,
          `the loss of session ${sessionId}, attachment ${attachment}, was recorded ${ms} ms after its expiry; ${lossMs} ms are allowed`,
        );
    }
  }

  async #checkMissing(instanceId: string): Promise<void> {
    const { bus, names } = this.#installation;
    for (let look = 1; look <= this.#bounds.looks; look++) {
      if (await this.#installation.histories.find(instanceId)) return this.#checkInstance(instanceId);
      const mail = await bus.read(names.inboxStream, names.inboxOf(instanceId), 1, 1);
      if (mail && mail.length > 0) return;
      if (look < this.#bounds.looks) await sleep(this.#installation.clock, this.#bounds.settleMs);
    }
    this.#findings.violation(
      "I1",
      instanceId,
      "it was acknowledged, but there is neither a history nor a message of it",
    );
  }

  async #eachAtOnce(ids: AsyncIterable<string>, act: (id: string) => Promise<void>): Promise<void> {
    const iterator = ids[Symbol.asyncIterator]();
    let turn: Promise<unknown> = Promise.resolve();
    const next = (): Promise<IteratorResult<string>> => {
      const mine = turn.then(() => iterator.next());
      turn = mine.catch(() => undefined); // the caller that awaits it gets the error
      return mine;
    };
    let done = 0;
    const work = async () => {
      for (let step = await next(); !step.done; step = await next()) {
        await act(step.value);
        if (++done % 500 === 0) this.#options.onProgress?.(`${done} histories read`);
      }
    };
    await Promise.all(Array.from({ length: historiesAtOnce }, work));
  }
}
