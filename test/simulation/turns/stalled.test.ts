/**
 * Owners that stall and wake: their last messages arrive when another owner is at work (T3, T4). A failing
 * seed is run again with `STALLED_FIRST=<seed> STALLED_SEEDS=1 npx vitest run
 * test/simulation/turns/stalled.test.ts`.
 */
import { expect, test } from "vitest";
import { liveStalledDay } from "../../support/worlds/stalled-day.ts";

/** Each of these left an instance that no owner went on with. */
const corpus = [7, 14, 16];
const fresh = Number(process.env.STALLED_SEEDS ?? 1);
const first = Number(process.env.STALLED_FIRST ?? Math.floor(Math.random() * 1_000_000));
const seeds = process.env.STALLED_FIRST ? [] : corpus;

test("defect 1: what an owner appended while it was stalled is followed up by its successor", async () => {
  const failed: string[] = [];
  for (const seed of [...seeds, ...Array.from({ length: fresh }, (_, i) => first + i)]) {
    const { stuck, way } = await liveStalledDay({ seed, instances: 60, alwaysReplay: seed % 3 === 0 });
    if (stuck.length > 0) failed.push(`seed ${seed} (${way}): ${stuck.join(" ")}`);
  }
  expect(failed, `seeds ${seeds.join(" ")} and ${fresh} from ${first}`).toEqual([]);
}, 600_000);
