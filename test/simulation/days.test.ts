/** Random days of the whole engine: seeds that once failed, and new ones. */
import { expect, test } from "vitest";
import { liveDay } from "./days/live-day.ts";
import { planOf } from "./days/plan.ts";

/** Each of these showed a defect, or a guard that was missing (docs/proof.md). */
const corpus = [1, 10, 1186, 1465];
const fresh = Number(process.env.SIMULATION_SEEDS ?? 6);
const first = Number(process.env.SIMULATION_FIRST ?? Math.floor(Math.random() * 1_000_000_000));

test("nothing is lost, doubled or stuck, whatever happened", async () => {
  const wrong: string[] = [];
  for (const seed of [...corpus, ...Array.from({ length: fresh }, (_, i) => first + i)]) {
    const { violations } = await liveDay(planOf(seed));
    wrong.push(...violations.map((violation) => `npm run test:simulation -- --seed ${seed}: ${violation}`));
  }
  expect(wrong, `corpus and ${fresh} seeds from ${first}`).toEqual([]);
}, 300_000);

test("a seed is the same day each time", async () => {
  const seed = first + fresh;
  const [one, two] = [await liveDay(planOf(seed)), await liveDay(planOf(seed))];
  expect(two, `seed ${seed}`).toEqual(one);
}, 60_000);
