/** One share of `npm run test:simulation`; skipped where nobody asked for it. */
import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { liveStalledDay } from "../support/stalled-day.ts";
import type { Share } from "./search.ts";

const { SEARCH_OUT: out, SEARCH_FIRST: first, SEARCH_SEEDS: seeds } = process.env;

const count = (into: Record<string, number>, key: string, by = 1) => {
  into[key] = (into[key] ?? 0) + by;
};

test.skipIf(!out)(
  "seeds",
  async () => {
    const share: Share = { seeds: 0, faults: {}, branches: {}, violations: [] };
    for (let seed = Number(first); seed < Number(first) + Number(seeds); seed++) {
      share.seeds++;
      try {
        const day = { seed, instances: 40, alwaysReplay: seed % 3 === 0, rough: seed % 2 === 0 };
        const { world, stuck, way } = await liveStalledDay(day);
        count(share.faults, way);
        for (const [fault, hits] of Object.entries(world.broker.fate.hits)) count(share.faults, fault, hits);
        for (const { kind } of world.happenings) count(share.branches, kind);
        if (stuck.length > 0) share.violations.push(`seed ${seed}: stuck: ${stuck.join(" ")}`);
      } catch (error) {
        share.violations.push(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
      }
      writeFileSync(out ?? "", JSON.stringify(share));
    }
  },
  86_400_000,
);
