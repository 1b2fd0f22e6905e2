/**
 * CPU time and memory of a process, as the system counts them. Linux only; elsewhere undefined, and the
 * figures are left out.
 */
import { readdirSync, readFileSync } from "node:fs";

/**
 * Length of a tick; Linux has reported 100 a second to user space since 2.6, whatever the kernel does inside.
 */
const tickMs = 10;

/** User and system time of all its threads so far: to the nanosecond where the kernel counts so, else in ticks. */
export function cpuMsOf(pid: number): number | undefined {
  return cpuMsOfThreads(pid) ?? cpuMsInTicks(pid);
}

/** CPU time of the threads that live. */
function cpuMsOfThreads(pid: number): number | undefined {
  const folder = `/proc/${pid}/task`;
  try {
    let ns = 0;
    for (const thread of readdirSync(folder))
      ns += Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]);
    return ns / 1e6;
  } catch {
    return undefined; // a thread ended meanwhile, or the kernel does not count
  }
}

function cpuMsInTicks(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name, in brackets, may hold spaces.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields && (Number(fields[11]) + Number(fields[12])) * tickMs;
}

export function rssBytesOf(pid: number): number | undefined {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? "");
  return found ? Number(found[1]) * 1024 : undefined;
}

/** Memory that no other process shares with it. */
export function privateBytesOf(pid: number): number | undefined {
  const rollup = read(`/proc/${pid}/smaps_rollup`);
  if (rollup === undefined) return undefined;
  const kilobytes = [...rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)];
  return kilobytes.reduce((sum, [, kb]) => sum + Number(kb) * 1024, 0);
}

/** Processes by name. */
export type Pids = Record<string, number>;

/** Sums up what each process uses while something runs. */
export class CpuMeter {
  readonly #pids: Pids;
  readonly #ms: Record<string, number> = {};

  constructor(pids: Pids) {
    this.#pids = pids;
  }

  async during<T>(run: () => Promise<T>): Promise<T> {
    const before = this.#read();
    const result = await run();
    const after = this.#read();
    for (const name of Object.keys(after)) {
      this.#ms[name] = (this.#ms[name] ?? 0) + (after[name] ?? 0) - (before[name] ?? 0);
    }
    return result;
  }

  /** Microseconds of CPU per unit of work; empty where they cannot be read. */
  perUnitUs(units: number): Record<string, number> {
    return Object.fromEntries(Object.entries(this.#ms).map(([name, ms]) => [name, (ms / units) * 1000]));
  }

  #read(): Record<string, number> {
    const found: Record<string, number> = {};
    for (const [name, pid] of Object.entries(this.#pids)) {
      const ms = cpuMsOf(pid);
      if (ms !== undefined) found[name] = ms;
    }
    return found;
  }
}

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined; // another system, or the process has ended
  }
};
