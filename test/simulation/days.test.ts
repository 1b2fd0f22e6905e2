/** Random days of the whole engine: seeds that once failed, and new ones. */
import { expect, test } from "vitest";
import { liveDay } from "./days/live-day.ts";
import { planOf } from "./days/plan.ts";

/** Each of these showed a defect, or a guard that was missing (docs/proof.md). */
const corpus = [1, 10, 1186, 1465, 8201805];
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

/** On the day of 8201805 another worker took a session where the machine was busy. */
test.each([8201805, first + fresh])(
  "a seed is the same day however busy the machine is: %i",
  async (seed) => {
    const one = await liveDay(planOf(seed));
    const work = setInterval(() => {
      for (const until = performance.now() + 30; performance.now() < until; );
    }, 100);
    try {
      expect(await liveDay(planOf(seed)), `seed ${seed}`).toEqual(one);
    } finally {
      clearInterval(work);
    }
  },
  60_000,
);
