import { readFileSync } from "node:fs";

/**
 * Distinguishes a process from a later one with the same pid: in containers pids are small and soon reused,
 * and a lock left by a crash must not count as held. Undefined: no such process. Empty string: alive, but its
 * start time is unknown.
 */
export function processMark(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM means that the process is alive and belongs to another user.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return undefined;
  }
  if (process.platform !== "linux") return "";
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may contain anything, so count from its end.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTicks] = [fields[0], fields[19]];
    // In a container without an init process a zombie may never be collected: it holds no lock.
    return state === "Z" || state === "X" ? undefined : (startTicks ?? "");
  } catch {
    return undefined; // The process ended between the two reads.
  }
}

export function isSameProcess(pid: number, mark: string): boolean {
  const now = processMark(pid);
  return now !== undefined && (now === mark || now === "" || mark === "");
}
