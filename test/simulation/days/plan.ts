/** What happens on a day, as data drawn from a seed: so it can be lived again, and made smaller. */
import fc from "fast-check";
import { seededRandom } from "../../../shared/runtime/index.ts";
import type { BusFaults } from "../../../shared/testing/memory/index.ts";
import { programs as anyProgram, type Step } from "../../support/worlds/random-program.ts";
import { commonKinds, cruelKinds, type FaultKind, rareKinds } from "./faults.ts";
import { known } from "./programs.ts";

export interface PlannedFault {
  kind: FaultKind;
  atMs: number;
  lastsMs: number;
  /** Which of those it may strike, as a share of their number. */
  whom: number;
  /** What else it depends on. */
  much: number;
}

export type PlannedProgram =
  | { kind: "known"; name: string; atMs: number }
  | { kind: "any"; steps: Step[]; atMs: number };

export interface Plan {
  seed: number;
  layout: "per-instance" | "shared";
  /** When an instance gets a stream of its own: with its first commit, soon, or as in production. */
  ownAfterMs: number;
  alwaysReplay: boolean;
  cacheSize: number;
  replicas: 1 | 3;
  partitions: 1 | 2 | 4;
  /** The history of an ended instance leaves its own stream after this. */
  archiveAfterMs: number;
  /** How often an orchestrator asks the next one whether it lives. */
  deathProbeMs: number;
  /** Activities and calls take so many times longer. */
  slowness: number;
  /** Users wait so long between two messages, and may send each of them again. */
  pauseMs: number;
  sendsAgain: boolean;
  /** For so long the server remembers the ids of messages. */
  dedupeMs: number;
  /** Everybody writes what the first generation reads until this time of day, each next member a while longer. */
  firstGenerationMs: number;
  generationStepMs: number;
  /** From this time of day the members are of a later version, one after the other; undefined: none is. */
  laterFromMs?: number;
  /** Instances are removed so long after their end; undefined: never. */
  retainForMs?: number;
  /** Programs are started under a limit that all of them share, or after a delay; undefined: at once. */
  starts?: { concurrency?: number; delayMs?: number };
  /** How bad the network is, kind by kind, all day long. */
  network: Partial<BusFaults>;
  programs: PlannedProgram[];
  faults: PlannedFault[];
}

/** Programs and faults begin within this time; fifteen seconds later all is well. */
export const dayMs = 5_000;

export function planOf(seed: number): Plan {
  const draw = drawFrom(seed);
  const { upTo, pick, chance } = draw;
  const programs: PlannedProgram[] = [];
  const size = 3 + Math.floor(upTo(4));
  for (let i = 0; i < size; i++) programs.push({ kind: "known", name: pick(known), atMs: upTo(dayMs * 0.6) });
  const [steps = []] = fc.sample(anyProgram, { seed, numRuns: 1 });
  programs.push({ kind: "any", steps, atMs: upTo(dayMs * 0.6) });
  const faults = Array.from({ length: 1 + Math.floor(upTo(4)) }, () =>
    plannedFault(chance(0.4) ? cruelKinds : commonKinds, programs, draw),
  );
  const plan: Plan = {
    seed,
    layout: pick(["per-instance", "shared"] as const),
    ownAfterMs: [0, 20, 1000][seed % 3] ?? 0,
    alwaysReplay: chance(0.25),
    cacheSize: pick([1, 1000] as const),
    replicas: chance(0.3) ? 3 : 1,
    partitions: pick([1, 2, 4] as const),
    archiveAfterMs: pick([1_000, 60_000]),
    deathProbeMs: pick([100, 1_000, 1_000]),
    slowness: pick([1, 1, 10, 40]),
    pauseMs: pick([0, 300, 1_500]),
    sendsAgain: chance(0.5),
    dedupeMs: pick([200, 120_000]),
    firstGenerationMs: chance(0.15) ? upTo(dayMs) : 0,
    generationStepMs: 0,
    network: chance(0.5) ? {} : network(upTo),
    programs,
    faults: faults.sort((a, b) => a.atMs - b.atMs),
  };
  return withRarities(plan, drawFrom(seed ^ 0x5eed));
}

/** Drawn apart, so that a seed is the day it was before there were these. */
function withRarities(plan: Plan, draw: Draw): Plan {
  const { upTo, chance } = draw;
  const rarely = {
    generationStepMs: chance(0.5) ? upTo(400) : 0,
    ...(chance(0.1) && { laterFromMs: upTo(dayMs) }),
    ...(chance(0.15) && { retainForMs: 20_000 + upTo(20_000) }),
    ...startsOf(plan, drawFrom(plan.seed ^ 0x57a27)),
  };
  if (!chance(0.15)) return { ...plan, ...rarely };
  const fault = plannedFault(rareKinds, plan.programs, draw);
  // Copies are there to lag only where streams have some.
  const copies = fault.kind === "leader change, copies lag" && { replicas: 3 as const };
  return { ...plan, ...rarely, ...copies, faults: [...plan.faults, fault] };
}

/** The first generation reads no starts under limits. */
function startsOf({ firstGenerationMs }: Plan, { upTo, chance }: Draw): Pick<Plan, "starts"> {
  if (firstGenerationMs > 0 || !chance(0.2)) return {};
  const concurrency = 1 + Math.floor(upTo(3));
  return { starts: { ...(chance(0.7) && { concurrency }), ...(chance(0.5) && { delayMs: upTo(3_000) }) } };
}

interface Draw {
  upTo(n: number): number;
  pick<T>(list: readonly T[]): T;
  chance(share: number): boolean;
}

function drawFrom(seed: number): Draw {
  const random = seededRandom(seed);
  return {
    upTo: (n) => random.next() * n,
    pick: (list) => list[Math.floor(random.next() * list.length)] as (typeof list)[number],
    chance: (share) => random.next() < share,
  };
}

function plannedFault(
  kinds: readonly FaultKind[],
  programs: readonly PlannedProgram[],
  { upTo, pick, chance }: Draw,
): PlannedFault {
  return {
    kind: pick(kinds),
    // Programs take a moment, a day takes long: most faults strike while one of them runs.
    atMs: chance(0.7) ? pick(programs).atMs + upTo(600) : upTo(dayMs),
    // Leases live three seconds: shorter, about as long, and longer than everything.
    lastsMs: pick([upTo(1_500), 2_600 + upTo(2_200), 5_000 + upTo(10_000)]),
    whom: upTo(1),
    much: upTo(1),
  };
}

/** Each kind with a rate of its own, often none. */
function network(upTo: (n: number) => number): Partial<BusFaults> {
  const rate = (most: number) => Math.max(0, upTo(2 * most) - most);
  return {
    publishLost: rate(0.03),
    publishUnanswered: rate(0.05),
    publishLate: rate(0.02),
    ackLost: rate(0.06),
    deliveredTwice: rate(0.06),
    deliveryLost: rate(0.03),
    deliveryDelayed: rate(0.1),
    deliveryDelayMs: 500,
    plainLost: rate(0.1),
    plainTwice: rate(0.05),
    plainDelayed: rate(0.08),
    plainDelayMs: 500,
    markerDelayMs: [0, 300],
    scheduleDelayMs: [0, 250],
  };
}
