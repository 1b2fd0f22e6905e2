/**
 * `npm run test:simulation -- --seeds 1000 [--first 1]`: so many days of the whole engine in virtual time, on all cores.
 * Prints seeds per second, faults by kind, how often the rare branches were reached, and what went wrong. Ends with 1 where
 * something did, or a fault or a rare branch never came. `--cores 1`: on so many cores only.
 *
 * `--seed 4711`: one day again, with its plan. `--seed 4711 --shrink`: the smallest day that still goes wrong.
 * `--mutate <guard>` or `--mutate all`: with a guard of the engine taken out (mutations.ts), until it is noticed.
 */
import { fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { faultKinds } from "./days/faults.ts";
import { mutations } from "./mutations.ts";
import { bundleDays } from "./search-bundle.ts";
import type { Lived } from "./search-worker.ts";

interface Found {
  seeds: number;
  faults: Record<string, number>;
  branches: Record<string, number>;
  violations: string[];
}

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
/** Fewer days cannot be asked to reach everything. */
const enough = 300;

/** A day takes a second of a loaded core; one that takes this long will not end. */
const hangsAfterMs = 300_000;
const progressEveryMs = 60_000;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: { seeds: text, first: text, seed: text, mutate: text, cores: text, shrink: { type: "boolean" } },
  });
  const folder = mkdtempSync(join(tmpdir(), "holdfast-days-"));
  try {
    if (values.seed !== undefined) {
      const guard = values.mutate;
      return await again(await bundleDays(folder, guard), values.shrink ? "--shrink" : "--show", values.seed);
    }
    const range = {
      first: Number(values.first ?? 1),
      seeds: Number(values.seeds ?? 100),
      cores: Number(values.cores ?? availableParallelism()),
    };
    return await (values.mutate === undefined
      ? searched(await bundleDays(folder), range)
      : mutated(folder, values.mutate, range));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Range {
  first: number;
  seeds: number;
  cores: number;
}

async function searched(file: string, range: Range): Promise<number> {
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
    ...faultKinds.filter((kind) => !all.faults[kind]),
  ];
  if (seeds >= enough) for (const what of never) console.log(`  NEVER   ${what}`);
  const missed = seeds >= enough ? never.length : 0;
  return all.violations.length + missed + Math.abs(seeds - all.seeds) > 0 ? 1 : 0;
}

/** A guard whose absence nothing notices is no guard, or the days are too good. */
async function mutated(folder: string, name: string, range: Range): Promise<number> {
  const chosen = mutations.filter((mutation) => name === "all" || mutation.name === name);
  if (chosen.length === 0) {
    console.log(`no guard named ${name}; there are: ${mutations.map((one) => one.name).join(", ")}`);
    return 2;
  }
  let unnoticed = 0;
  for (const { name: guard } of chosen) {
    const found = await search(
      await bundleDays(folder, guard),
      range,
      (soFar) => soFar.violations.length > 0,
    );
    const [violation] = found.violations;
    if (!violation) unnoticed++;
    console.log(
      violation
        ? `  noticed   ${guard}: after ${found.seeds} seeds: ${violation.split("\n")[0]?.slice(0, 160)}`
        : `  UNNOTICED ${guard}: in ${found.seeds} seeds`,
    );
  }
  return unnoticed > 0 ? 1 : 0;
}

function again(file: string, how: "--show" | "--shrink", seed: string): Promise<number> {
  const child = spawn(process.execPath, [file, how, seed], { stdio: "inherit" });
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

/** Hands out the seeds in order, one to each process at a time, until `isEnough` returns true. */
async function search(
  file: string,
  { first, seeds, cores }: Range,
  isEnough: (soFar: Found) => boolean | undefined,
): Promise<Found> {
  const found: Found = { seeds: 0, faults: {}, branches: {}, violations: [] };
  let next = first;
  const take = () => (next < first + seeds ? next++ : undefined);
  const add = ({ seed, outcome }: Lived) => {
    found.seeds++;
    for (const [fault, hits] of Object.entries(outcome.faults)) count(found.faults, fault, hits);
    for (const [kind, hits] of Object.entries(outcome.branches)) count(found.branches, kind, hits);
    for (const violation of outcome.violations) found.violations.push(`seed ${seed}: ${violation}`);
    if (isEnough(found)) next = first + seeds;
  };
  const share = async () => {
    for (let seed = take(); seed !== undefined; ) {
      const died = await liveFrom(file, seed, add, take);
      if (!died) return;
      add({ seed: died.seed, outcome: { violations: [died.how], faults: {}, branches: {} } });
      seed = take();
    }
  };
  await Promise.all(Array.from({ length: Math.min(seeds, cores) }, share));
  return found;
}

/** One process lives days until no seed is left. Returns the seed at which it died, if it did. */
function liveFrom(
  file: string,
  first: number,
  add: (lived: Lived) => void,
  take: () => number | undefined,
): Promise<{ seed: number; how: string } | undefined> {
  const child = fork(file, { stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let said = "";
  child.stderr?.on("data", (chunk) => {
    said = `${said}${chunk}`.slice(-2_000);
  });
  return new Promise((resolve) => {
    let seed: number | undefined;
    let hangs: NodeJS.Timeout | undefined;
    const send = (following: number | undefined) => {
      clearTimeout(hangs);
      seed = following;
      if (seed === undefined) return void child.disconnect();
      hangs = setTimeout(() => child.kill("SIGKILL"), hangsAfterMs);
      child.send(seed);
    };
    child.on("message", (lived: Lived) => {
      add(lived);
      send(take());
    });
    child.once("exit", (code, signal) => {
      clearTimeout(hangs);
      resolve(seed === undefined ? undefined : { seed, how: `the process ended: ${signal ?? code} ${said}` });
    });
    send(first);
  });
}

function count(into: Record<string, number>, key: string, by: number): void {
  into[key] = (into[key] ?? 0) + by;
}

process.exitCode = await main();
