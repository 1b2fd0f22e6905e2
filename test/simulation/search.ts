/**
 * `npm run test:simulation -- --seeds 1000 [--first 1]`: so many days of the whole engine in virtual time, on all cores.
 * Prints seeds per second, faults by kind, how often the rare branches were reached, and what went wrong. Ends with 1 where
 * something did, or a fault or a rare branch never came. `--cores 1`: on so many cores only. `--record` writes the result
 * into docs/proof.md.
 *
 * `--seed 4711`: one day again, with its plan. `--seed 4711 --shrink`: the smallest day that still goes wrong.
 * `--mutate <guard>,<guard>` or `--mutate all`: with a guard of the engine taken out (mutations.ts), until it is noticed: by a day
 * on which it matters, and by its scenario. `--around <guard>`: such days with the guard in its place.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { recordProof } from "../support/documents/record-proof.ts";
import { commonKinds, rareKinds } from "./days/faults.ts";
import { bundleDays } from "./search-bundle.ts";
import { searchWithoutGuards } from "./search-guards.ts";
import { type Range, search } from "./search-seeds.ts";

/** What a run must have reached to prove anything (I18). */
const rare = [
  "turn.fenced",
  "commit.owed",
  "message.duplicate",
  "append.ambiguous",
  "completion.late",
  "completion.fenced",
  "instance.loaded",
  "lane.adopted",
  "lane.recalled",
  "partition.lost: expired",
  "partition.lost: released",
  "lease.lost: expired",
  "session.lost",
  "session.attached: again",
  "claim.seen: raced",
  "claim.seen: forwarded",
  "worker.died",
  "orchestrator.died",
  "watcher.grace",
  "activity.handed_back",
];
/** What is so all day long on some days. */
const rarities = [
  "members of a later version",
  "members of two generations",
  "ended instances removed",
  "starts under a limit",
  "starts after a delay",
];
/** Fewer days cannot be asked to reach everything. */
const enough = 300;

const progressEveryMs = 60_000;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      ...{ seeds: text, first: text, seed: text, mutate: text, around: text, cores: text },
      shrink: { type: "boolean" },
      record: { type: "boolean", default: false },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), "holdfast-days-"));
  try {
    if (values.seed !== undefined) {
      const guard = values.mutate ?? values.around ?? "";
      const file = await bundleDays(folder, values.mutate);
      return await again([file, values.shrink ? "--shrink" : "--show", guard, values.seed]);
    }
    const range: Range = {
      first: Number(values.first ?? 1),
      seeds: Number(values.seeds ?? 100),
      cores: Number(values.cores ?? availableParallelism()),
      guard: values.around,
    };
    return await (values.mutate === undefined
      ? searched(await bundleDays(folder), range, values.record)
      : searchWithoutGuards(folder, values.mutate, range, values.record));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function searched(file: string, range: Range, record: boolean): Promise<number> {
  const { first, seeds } = range;
  const startedAt = performance.now();
  const speed = (lived: number) => {
    const seconds = (performance.now() - startedAt) / 1000;
    return `${lived} seeds from ${first} in ${seconds.toFixed(1)} s: ${(lived / seconds).toFixed(1)} seeds/s`;
  };
  let toldAt = startedAt;
  let told = 0;
  const all = await search(file, range, ({ seeds: lived, violations }) => {
    for (const violation of violations.slice(told)) console.log(`  WRONG   ${violation}`);
    told = violations.length;
    if (performance.now() - toldAt < progressEveryMs) return;
    toldAt = performance.now();
    console.log(`  so far  ${speed(lived)}, ${violations.length} violations`);
  });
  console.log(`${speed(all.seeds)} (${range.cores} processes), ${all.violations.length} violations`);
  for (const [fault, hits] of Object.entries(all.faults).sort()) console.log(`  fault   ${fault}: ${hits}`);
  for (const branch of rare) console.log(`  branch  ${branch}: ${all.branches[branch] ?? 0}`);
  const wrong = new Set(all.violations.map((violation) => /^seed (\d+)/.exec(violation)?.[1]));
  for (const seed of wrong) console.log(`  again   npm run test:simulation -- --seed ${seed} --shrink`);
  const never = [
    ...rare.filter((branch) => !all.branches[branch]),
    ...[...commonKinds, ...rareKinds, ...rarities].filter((kind) => !all.faults[kind]),
  ];
  const missed = seeds >= enough && range.guard === undefined ? never.length : 0;
  if (missed > 0) for (const what of never) console.log(`  NEVER   ${what}`);
  if (record) {
    const counted = (of: [string, number][]) => of.map(([what, hits]) => `${what} ${hits}`).join(", ");
    const lines = [
      `${speed(all.seeds)} (${range.cores} processes): **${wrong.size} went wrong**${wrong.size > 0 ? ` (${[...wrong].join(", ")})` : ""}.`,
      "",
      `- Faults: ${counted(Object.entries(all.faults).sort())}.`,
      `- Rare branches: ${counted(rare.map((branch) => [branch, all.branches[branch] ?? 0]))}.`,
    ];
    await recordProof("days", lines.join("\n"));
  }
  return all.violations.length + missed + Math.abs(seeds - all.seeds) > 0 ? 1 : 0;
}

function again(args: string[]): Promise<number> {
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

process.exitCode = await main();
