import { readFileSync } from "node:fs";

/**
 * Tells a process from a later one under the same pid: in containers pids are small and soon used again, and a lock
 * left by a crash must not be taken for held. `undefined`: no such process. Empty: alive, but nothing more is known.
 */
export function processMark(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM means that it lives under another user.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return undefined;
  }
  if (process.platform !== "linux") return "";
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may hold anything, so count from its end.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTicks] = [fields[0], fields[19]];
    // Nobody may ever collect a zombie in a container without an init process: it holds nothing any more.
    return state === "Z" || state === "X" ? undefined : (startTicks ?? "");
  } catch {
    return undefined; // it ended between the two looks
  }
}

export function isSameProcess(pid: number, mark: string): boolean {
  const now = processMark(pid);
  return now !== undefined && (now === mark || now === "" || mark === "");
}
