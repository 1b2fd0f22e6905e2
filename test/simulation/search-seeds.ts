/** Lives days in processes of their own, one on each core, and adds up what came of them. */
import { fork } from "node:child_process";
import type { Lived } from "./search-worker.ts";

export interface Found {
  seeds: number;
  faults: Record<string, number>;
  branches: Record<string, number>;
  violations: string[];
}

export interface Range {
  first: number;
  seeds: number;
  cores: number;
  /** Only days on which this guard matters (days/directed.ts). */
  guard?: string | undefined;
}

/** A day takes a second of a loaded core; one that takes this long will not end. */
const hangsAfterMs = 300_000;
/** Hands out the seeds in order, one to each process at a time, until `isEnough` returns true. */
export async function search(
  file: string,
  { first, seeds, cores, guard }: Range,
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
      const died = await liveFrom([file, guard ?? ""], seed, add, take);
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
  [file, guard]: readonly [string, string],
  first: number,
  add: (lived: Lived) => void,
  take: () => number | undefined,
): Promise<{ seed: number; how: string } | undefined> {
  const child = fork(file, ["--many", guard], { execArgv: [], stdio: ["ignore", "ignore", "pipe", "ipc"] });
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
