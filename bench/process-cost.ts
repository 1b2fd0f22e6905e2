/** What a process costs, as the system counts it. Linux only; elsewhere undefined, and the figures are left out. */
import { readFileSync } from "node:fs";

/** Of a tick; Linux has reported 100 a second to user space since 2.6, whatever the kernel does inside. */
const tickMs = 10;

/** User and system time of all its threads so far. */
export function cpuMsOf(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name, in brackets, may hold spaces.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields && (Number(fields[11]) + Number(fields[12])) * tickMs;
}

export function rssBytesOf(pid: number): number | undefined {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? "");
  return found ? Number(found[1]) * 1024 : undefined;
}

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined; // another system, or the process has ended
  }
};
