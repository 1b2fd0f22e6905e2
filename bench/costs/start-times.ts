/** How long a service takes until it is ready, and a command until it has answered. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Rig } from "../rig.ts";
import type { ServiceName } from "../service.ts";

const cli = fileURLToPath(new URL("../../bin/holdfast.js", import.meta.url));

/** Median over several starts; the first one warms the system's file cache and does not count. */
export async function readyMs(
  rig: Rig,
  service: ServiceName,
  times: number,
  env: Record<string, string> = {},
): Promise<number> {
  return median(times, async () => {
    const since = performance.now();
    const started = await rig.startService(service, env);
    const ms = performance.now() - since;
    await started.end("SIGTERM");
    return ms;
  });
}

/** Median time of `holdfast list`. */
export const listMs = (rig: Rig, times: number): Promise<number> =>
  median(times, async () => runMs([cli, "list"], rig.env));

export function runMs(args: string[], env: Readonly<Record<string, string>>): number {
  const since = performance.now();
  execFileSync(process.execPath, args, { env: { ...process.env, ...env }, stdio: "ignore" });
  return performance.now() - since;
}

export async function median(times: number, measure: () => Promise<number>): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i <= times; i++) all.push(await measure());
  const sorted = all.slice(1).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
