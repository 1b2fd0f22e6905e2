/** The smallest day that still goes wrong: programs, faults and all that is unusual are left out one after the other. */
import { liveDay } from "./live-day.ts";
import type { Plan } from "./plan.ts";

export async function shrink(plan: Plan, onStep: (plan: Plan, violations: string[]) => void): Promise<Plan> {
  let smallest = plan;
  for (let smaller = true; smaller; ) {
    smaller = false;
    for (const candidate of candidates(smallest)) {
      const { violations } = await liveDay(candidate);
      if (violations.length === 0) continue;
      smallest = candidate;
      smaller = true;
      onStep(candidate, violations);
      break;
    }
  }
  return smallest;
}

function* candidates(plan: Plan): Generator<Plan> {
  for (const index of plan.faults.keys()) yield { ...plan, faults: plan.faults.toSpliced(index, 1) };
  for (const index of plan.programs.keys())
    if (plan.programs.length > 1) yield { ...plan, programs: plan.programs.toSpliced(index, 1) };
  for (const key of Object.keys(plan.network) as (keyof Plan["network"])[]) {
    const { [key]: _gone, ...network } = plan.network;
    yield { ...plan, network };
  }
  for (const [index, program] of plan.programs.entries()) {
    if (program.kind !== "any") continue;
    for (const step of program.steps.keys())
      if (program.steps.length > 1)
        yield {
          ...plan,
          programs: plan.programs.with(index, { ...program, steps: program.steps.toSpliced(step, 1) }),
        };
  }
  if (plan.replicas === 3) yield { ...plan, replicas: 1 };
  if (plan.alwaysReplay) yield { ...plan, alwaysReplay: false };
  if (plan.cacheSize !== 1000) yield { ...plan, cacheSize: 1000 };
  if (plan.firstGenerationMs > 0) yield { ...plan, firstGenerationMs: 0 };
  for (const rarity of ["laterFromMs", "retainForMs", "starts"] as const) {
    const { [rarity]: drawn, ...rest } = plan;
    if (drawn !== undefined) yield rest;
  }
}
