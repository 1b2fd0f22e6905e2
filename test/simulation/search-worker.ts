/**
 * One process of `npm run test:simulation` (search.ts): lives the days whose seeds it is sent, one after the other, and
 * answers each with what came of it. `--show <seed>` and `--shrink <seed>` live one day for a person. With the name of a
 * guard the days are those on which it matters (days/directed.ts).
 */
import { directed } from "./days/directed.ts";
import { liveDay, type Outcome } from "./days/live-day.ts";
import { planOf } from "./days/plan.ts";
import { shrink } from "./days/shrink.ts";

export interface Lived {
  seed: number;
  outcome: Outcome;
}

const [how, guard, seed] = process.argv.slice(2);
const dayOf = (one: number) => directed(planOf(one), guard);

if (how === "--show") {
  const plan = dayOf(Number(seed));
  console.log(JSON.stringify(plan, null, 2));
  end((await liveDay(plan)).violations);
} else if (how === "--shrink") {
  const plan = await shrink(dayOf(Number(seed)), (_plan, [violation]) =>
    console.log(`smaller: ${violation}`),
  );
  console.log(JSON.stringify(plan, null, 2));
  end((await liveDay(plan)).violations);
} else {
  process.on("message", async (next: number) => {
    const outcome = await liveDay(dayOf(next));
    process.send?.({ seed: next, outcome } satisfies Lived);
  });
}

function end(violations: string[]): void {
  for (const violation of violations) console.log(`WRONG ${violation}`);
  if (violations.length === 0) console.log("nothing went wrong");
  process.exit(violations.length === 0 ? 0 : 1);
}
