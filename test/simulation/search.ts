/**
 * `npm run test:simulation -- --seeds 1000 [--first 1]`: days of the whole engine in virtual time, on all cores. Prints
 * seeds per second, faults by kind, how often the rare branches were reached, and what went wrong. Ends with 1 where
 * something did, or a rare branch was never reached. One seed again: `--seeds 1 --first <seed>`.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

export interface Share {
  seeds: number;
  faults: Record<string, number>;
  branches: Record<string, number>;
  violations: string[];
}

const rare = [
  "turn.fenced",
  "message.duplicate",
  "append.ambiguous",
  "completion.late",
  "instance.loaded",
  "lane.adopted",
  "lane.recalled",
  "partition.lost",
];

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { seeds: { type: "string" }, first: { type: "string" } } });
  const seeds = Number(values.seeds ?? 100);
  const first = Number(values.first ?? 1);
  const cores = Math.min(seeds, availableParallelism());
  const folder = mkdtempSync(join(tmpdir(), "holdfast-search-"));
  const startedAt = performance.now();
  const shares = await Promise.all(
    Array.from({ length: cores }, (_, core) => {
      const from = first + Math.floor((seeds * core) / cores);
      const to = first + Math.floor((seeds * (core + 1)) / cores);
      return search(from, to - from, join(folder, `${core}.json`));
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  rmSync(folder, { recursive: true });
  const all = shares.reduce(sum, { seeds: 0, faults: {}, branches: {}, violations: [] });
  console.log(
    `${all.seeds} seeds from ${first} in ${seconds.toFixed(1)} s: ${(all.seeds / seconds).toFixed(1)} seeds/s`,
  );
  for (const [fault, hits] of Object.entries(all.faults).sort()) console.log(`  fault   ${fault}: ${hits}`);
  for (const branch of rare) console.log(`  branch  ${branch}: ${all.branches[branch] ?? 0}`);
  for (const violation of all.violations) console.log(`  WRONG   ${violation}`);
  const never = seeds < 20 ? [] : rare.filter((branch) => !all.branches[branch]);
  for (const branch of never) console.log(`  NEVER   ${branch}`);
  return all.violations.length + never.length + Math.abs(seeds - all.seeds) > 0 ? 1 : 0;
}

function search(first: number, seeds: number, out: string): Promise<Share> {
  const env = { ...process.env, SEARCH_FIRST: `${first}`, SEARCH_SEEDS: `${seeds}`, SEARCH_OUT: out };
  const args = ["node_modules/vitest/vitest.mjs", "run", "test/simulation/search.test.ts"];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "inherit"] });
    child.once("error", reject);
    child.once("exit", () => {
      try {
        resolve(JSON.parse(readFileSync(out, "utf8")));
      } catch (error) {
        reject(error);
      }
    });
  });
}

const sum = (a: Share, b: Share): Share => ({
  seeds: a.seeds + b.seeds,
  faults: added(a.faults, b.faults),
  branches: added(a.branches, b.branches),
  violations: [...a.violations, ...b.violations],
});

function added(a: Record<string, number>, b: Record<string, number>): Record<string, number> {
  const both = { ...a };
  for (const [key, n] of Object.entries(b)) both[key] = (both[key] ?? 0) + n;
  return both;
}

if (process.env.SEARCH_OUT === undefined) process.exitCode = await main();
