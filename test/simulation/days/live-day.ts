/**
 * Lives a planned day with the whole engine in virtual time, lets everything become well again, and asks the checker that
 * reads only the streams (`shared/verify`). What the users of the day saw goes into its journal.
 */
import { type FaultPoint, orchestratorFaultPoints } from "../../../services/orchestrator/fault-points.ts";
import { type WorkerFaultPoint, workerFaultPoints } from "../../../services/worker/fault-points.ts";
import { headerNames } from "../../../shared/bus/index.ts";
import { collectApp } from "../../../shared/definitions/index.ts";
import { fixedGeneration, type Generation } from "../../../shared/fleet/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";
import { LeaseLog, violationLines } from "../../../shared/verify/index.ts";
import { asLater } from "../../support/documents/later-version.ts";
import { type Said, tapWorld } from "../../support/nats/tapped-bus.ts";
import { type Crew, faults, type Room } from "./faults.ts";
import type { Plan, PlannedFault } from "./plan.ts";
import { dayApp, scarceSeats } from "./programs.ts";
import { Users } from "./users.ts";

export interface Outcome {
  violations: string[];
  /** How often each fault struck. */
  faults: Record<string, number>;
  /** How often each kind of thing happened. */
  branches: Record<string, number>;
}

/** After the last fault everything must have come to its end within this time. */
const healedMs = 240_000;
/** Then what is over must have been tidied up: longer than the server waits for an acknowledgement that was lost. */
const tidyMs = 100_000;

/** A later version is rolled out member by member. */
const laterStepMs = 300;

/** How often the watcher tidies up, and how often at most until it has tidied up after a death or an end. */
const sweepEveryMs = 5_000;
const sweeps = 12;

export async function liveDay(plan: Plan): Promise<Outcome> {
  const day = new Day(plan);
  const violations = await day.live();
  const { world, struck } = day;
  for (const [fault, hits = 0] of Object.entries(world.broker.fate.hits)) struck[fault] = hits;
  if (plan.laterFromMs !== undefined) struck["members of a later version"] = 1;
  if (plan.firstGenerationMs > 0 && plan.generationStepMs > 0) struck["members of two generations"] = 1;
  if (plan.starts?.concurrency !== undefined) struck["starts under a limit"] = 1;
  if (plan.starts?.delayMs !== undefined) struck["starts after a delay"] = 1;
  const branches: Record<string, number> = {};
  const reach = (branch: string) => {
    branches[branch] = (branches[branch] ?? 0) + 1;
  };
  const attached = new Set<string>();
  for (const happening of world.happenings) {
    const { kind } = happening;
    reach(kind);
    if (kind === "lease.lost" || kind === "partition.lost") reach(`${kind}: ${happening.why}`);
    if (kind === "claim.seen") reach(`${kind}: ${happening.verdict}`);
    if (kind !== "session.attached") continue;
    if (attached.has(happening.sessionId)) reach("session.attached: again");
    attached.add(happening.sessionId);
  }
  return { violations, faults: struck, branches };
}

class Day implements Crew {
  readonly world: World;
  readonly orchestrators: Member[] = [];
  readonly workers: Member[] = [];
  readonly watchers: Member[] = [];
  readonly struck: Record<string, number> = {};
  readonly #plan: Plan;
  readonly #users: Users;
  /** The member to kill or pause at the next fault point of that name. */
  #ambush: { point: string; left: number; strike: (member: Member, room: Room) => void } | undefined;
  /** Of each session, the newest epoch under which users' code was run. */
  readonly #epochs = new Map<string, number>();
  readonly #late: string[] = [];

  constructor(plan: Plan) {
    this.#plan = plan;
    const { seed, layout, ownAfterMs, alwaysReplay, cacheSize, replicas, partitions, deathProbeMs } = plan;
    const steps = plan.programs.map((program) => (program.kind === "any" ? program.steps : []));
    const app = collectApp(
      dayApp(
        () => this.world,
        (index) => steps[index] ?? [],
        (ctx) => this.#onCall(ctx.session),
        plan.slowness,
      ),
    );
    this.world = new World({
      ...{ seed, app, layout, ownAfterMs, alwaysReplay, cacheSize, replicas, partitions, deathProbeMs },
      faults: {
        ...noFaults,
        // Half of all ways take no time.
        latencyMs: [-4, 4],
        scheduleDelayMs: [0, 250],
        replicaLagMs: [0, 40],
        ...plan.network,
      },
      watcherSettings: {
        ...{ sweepEveryMs, deadAfterMs: 10_000, archiveAfterMs: plan.archiveAfterMs },
        retainForMs: plan.retainForMs ?? 0,
      },
      generation: (member) => this.#generation(member),
      // Time is let pass in one place alone: around the whole day.
      drive: (work) => work,
      dedupeMs: plan.dedupeMs,
      onPoint: (point, memberId) => this.#onPoint(point, memberId),
    });
    const { clock } = this.world;
    const laterFrom = ({ by }: Said) => (plan.laterFromMs ?? Number.POSITIVE_INFINITY) + by * laterStepMs;
    /** A commit that was stored is copied as it is, whoever copies it. */
    const commits = new Map<string, boolean>();
    const isLater = (said: Said) => {
      const commitId = said.headers[headerNames.commit];
      const before = commitId === undefined ? undefined : commits.get(commitId);
      const later = before ?? (said.by >= 0 && clock.monotonic() >= laterFrom(said));
      if (commitId !== undefined) commits.set(commitId, later);
      return later;
    };
    if (plan.laterFromMs !== undefined)
      tapWorld(this.world, (said) => (isLater(said) ? asLater(said) : said));
    this.#users = new Users(this.world, plan);
  }

  #generation(member: number): Generation {
    const { firstGenerationMs, generationStepMs } = this.#plan;
    const until = firstGenerationMs > 0 ? firstGenerationMs + member * generationStepMs : 0;
    const isOld = () => this.world.clock.monotonic() < until;
    const [first, second] = [fixedGeneration(1), fixedGeneration(2)];
    const now = () => (isOld() ? first : second);
    return {
      get written() {
        return now().written;
      },
      allows: (generation) => now().allows(generation),
      isLater: () => false,
      heldBackBy: () => [],
    };
  }

  async live(): Promise<string[]> {
    const { clock } = this.world;
    let found: string[] = [];
    const life = this.#life().then((violations) => {
      found = violations;
    });
    try {
      await clock.run(life, 3_600_000);
    } catch (error) {
      return [
        `the day did not end: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      ];
    }
    return found;
  }

  async #life(): Promise<string[]> {
    const { world } = this;
    const { programs, faults: planned, seed } = this.#plan;
    await world.prepare();
    for (const room of ["orchestrators", "orchestrators", "workers", "workers", "watchers"] as const)
      await this.#begin(room);
    if (seed % 3 === 0) await this.#begin("watchers");
    const log = await LeaseLog.start({ bus: world.outside, names: world.names });
    const ends = planned.map((fault) => this.#strike(fault));
    const runs = programs.map((program, index) => this.#users.use(program, index));
    await Promise.all(ends);
    this.#heal();
    const left = await Promise.all(runs.map((run) => this.#within(run, healedMs)));
    await this.#tidied();
    const journal = await this.#users.journalOfWhatIsThere();
    if (journal.length < this.#users.journal.length) this.struck["ended instances removed"] = 1;
    // A bucket that was made anew has no leases.
    const leases = this.struck["leases re-created"] ? {} : { leases: log };
    const orphanMs = this.#plan.archiveAfterMs + sweeps * sweepEveryMs;
    const report = await world.verify({ quiet: true, journal, ...leases, orphanMs });
    return [...left.flat(), ...this.#late, ...this.#seats(log), ...violationLines(report)];
  }

  async #strike(planned: Plan["faults"][number]): Promise<void> {
    const { clock } = this.world;
    await sleep(clock, planned.atMs);
    this.struck[planned.kind] = (this.struck[planned.kind] ?? 0) + 1;
    const end = faults[planned.kind](this, planned);
    await sleep(clock, planned.lastsMs);
    end?.();
  }

  #heal(): void {
    this.#users.isHealed = true;
    this.#ambush = undefined;
    this.world.broker.fate.faults = noFaults;
  }

  /** Most days are tidy at once. */
  async #tidied(): Promise<void> {
    const { broker, clock, names } = this.world;
    const queues = [names.inboxStream, names.activitiesStream, names.sessionsStream, names.claimsStream];
    const until = clock.monotonic() + tidyMs;
    do await sleep(clock, 1_000);
    while (clock.monotonic() < until && queues.some((name) => (broker.streams.get(name)?.size ?? 0) > 0));
  }

  async #within(run: Promise<string[]>, ms: number): Promise<string[]> {
    return Promise.race([run, sleep(this.world.clock, ms).then(() => [])]);
  }

  // what faults are given

  replace(room: Room, gone: Member): void {
    const index = this[room].indexOf(gone);
    if (index >= 0) this[room].splice(index, 1);
    this.beside(this.#begin(room));
  }

  /** Starts a member, and again if its start failed, as a service manager does. */
  #begin(room: Room): Promise<void> {
    const make = () =>
      room === "workers"
        ? this.#worker()
        : room === "watchers"
          ? this.world.watcher()
          : this.world.orchestrator();
    return this.#users.surely(async () => void this[room].push(await make()));
  }

  #worker(): Promise<Member> {
    return this.world.worker(undefined, { settings: { WORKER_ACTIVITY_SLOTS: "4" } });
  }

  atPoint({ whom, much }: PlannedFault, strike: (member: Member, room: Room) => void): void {
    const point = points[Math.floor(whom * points.length)] as string;
    this.#ambush = { point, left: Math.floor(much ** 2 * 8), strike };
  }

  #onPoint(point: FaultPoint | WorkerFaultPoint, memberId: string): void {
    const ambush = this.#ambush;
    if (ambush?.point !== point || --ambush.left >= 0) return;
    this.#ambush = undefined;
    for (const room of ["orchestrators", "workers"] as const) {
      const member = this[room].find(({ id }) => id === memberId);
      if (!member) continue;
      this.struck[`at ${point}`] = (this.struck[`at ${point}`] ?? 0) + 1;
      ambush.strike(member, room);
    }
  }

  /** QUOTA-1, by the order of the lease stream. */
  #seats(log: LeaseLog): string[] {
    if (this.struck["leases re-created"]) return [];
    const most = log.mostAtOnce(({ instanceId }) => instanceId?.startsWith("seated-") === true);
    return most > scarceSeats ? [`QUOTA-1 ${most} sessions were held, ${scarceSeats} may be`] : [];
  }

  /** S7: at most one holder acts. Actions of a process after its death have no effect. */
  #onCall({ id, epoch, workerId }: { id: string; epoch: number; workerId: string }): void {
    if (this.workers.find((member) => member.id === workerId)?.bus.killed !== false) return;
    const newest = this.#epochs.get(id) ?? 0;
    if (epoch < newest)
      this.#late.push(`S7 session ${id}: ${workerId} runs a call of epoch ${epoch} after ${newest}`);
    this.#epochs.set(id, Math.max(newest, epoch));
  }

  async someSession(share: number): Promise<string | undefined> {
    const found = await this.world.client.sessions.list({ phase: "active" });
    return found[Math.floor(share * found.length)]?.sessionId;
  }

  terminateSome(share: number): void {
    this.#users.terminateSome(share);
  }

  beside(work: Promise<unknown>): void {
    this.#users.beside(work);
  }
}

const points = [...orchestratorFaultPoints, ...workerFaultPoints];
