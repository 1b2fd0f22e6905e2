/**
 * Days on which one guard of the engine matters more often than on others (mutations.ts): which programs run, what goes
 * wrong and how bad the network is comes from the guard, everything else from the seed. With the guard in its place
 * nothing may go wrong on them either.
 */
import type { BusFaults } from "../../../shared/testing/memory/index.ts";
import type { FaultKind } from "./faults.ts";
import type { Plan } from "./plan.ts";

interface Direction {
  programs?: readonly string[];
  faults?: readonly FaultKind[];
  network?: Partial<BusFaults>;
  rest?: Partial<Plan>;
}

const unsure = { publishUnanswered: 0.25, publishLost: 0.05 };
const repeated = { ...unsure, plainTwice: 0.2, plainDelayed: 0.2, plainDelayMs: 500, deliveredTwice: 0.1 };
const bothDie: Direction = {
  programs: ["sequence", "fan-out", "crowd", "flaky"],
  faults: ["an orchestrator and a worker die", "crash", "pause, sent is held"],
  rest: { slowness: 40, firstGenerationMs: 0 },
};
const holders = ["counted", "twins", "seated", "pooled"];

/** By the name of the guard. */
const directions: Readonly<Record<string, Direction>> = {
  "owed after a fence": {
    programs: ["sequence", "family", "naps", "timers", "generations"],
    faults: ["pause at a point", "outgoing held", "pause, sent is held"],
    network: { publishLate: 0.15, publishUnanswered: 0.1 },
  },
  anchor: bothDie,
  "what an owner before sent by the lane": bothDie,
  "reports by the lane need an anchor": {
    programs: ["locals", "flaky", "timers", "raced"],
    faults: ["crash at a point", "pause at a point", "an orchestrator and a worker die"],
  },
  "first completion wins": {
    programs: ["flaky"],
    faults: ["crash", "operator redeploys an orchestrator"],
    network: repeated,
    rest: { dedupeMs: 200 },
  },
  "epoch of a result": {
    programs: holders,
    faults: ["outgoing held", "pause, sent is held", "pause at a point"],
    rest: { slowness: 10, firstGenerationMs: 0 },
  },
  "message ids of signals": {
    programs: ["signals"],
    network: unsure,
    rest: { sendsAgain: true, dedupeMs: 200, firstGenerationMs: 0 },
  },
  "order of the inbox": {
    programs: ["signals"],
    network: { deliveryLost: 0.15 },
    rest: { pauseMs: 0, firstGenerationMs: 0 },
  },
  "next execution by whoever finds it": {
    programs: ["naps", "generations"],
    faults: ["crash at a point", "crash", "all orchestrators die", "pause at a point"],
  },
  "time of a history": {
    programs: ["timers", "naps", "signals", "sequence"],
    faults: ["clock of the server", "operator redeploys an orchestrator", "crash"],
  },
  "attachment is claimed once": {
    programs: holders,
    faults: ["crash", "operator drains a worker", "pause, sent is held"],
    network: { ...repeated, deliveryDelayed: 0.3, deliveryDelayMs: 500 },
  },
  "holder fences itself": {
    programs: holders,
    faults: ["incoming held", "pause, sent is held", "outgoing held", "cut off"],
    rest: { slowness: 40 },
  },
  "holder's check before it reports": {
    programs: holders,
    faults: ["pause, sent is held", "pause at a point", "pause, sent goes through"],
    rest: { slowness: 10 },
  },
  "read model behind the history": {
    faults: ["pause at a point", "pause, sent is held", "outgoing held"],
    network: { publishLate: 0.15, publishUnanswered: 0.1 },
  },
  "updates are known by their id": {
    programs: ["updated"],
    network: repeated,
    rest: { sendsAgain: true, dedupeMs: 200, firstGenerationMs: 0 },
  },
};

/** The day of this plan, as it is lived to see whether the guard is missing. */
export function directed(plan: Plan, guard: string | undefined): Plan {
  const { programs, faults, network, rest } = directions[guard ?? ""] ?? {};
  const nth = <T>(list: readonly T[], index: number): T => list[(plan.seed + index) % list.length] as T;
  return {
    ...plan,
    ...rest,
    ...(programs && {
      programs: plan.programs.map((one, index) =>
        one.kind === "known" ? { ...one, name: nth(programs, index) } : one,
      ),
    }),
    ...(faults && { faults: plan.faults.map((one, index) => ({ ...one, kind: nth(faults, index) })) }),
    network: { ...plan.network, ...network },
  };
}
