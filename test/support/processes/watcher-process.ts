/** A watcher in a process of its own, for tests that kill or pause it. What it announces is read from its log. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { keepLog } from "./service-logs.ts";

const quick = { WATCHER_LEASE_TTL: "1s", WATCHER_GRACE: "2s", WATCHER_RECONCILE_EVERY: "1m" };

export interface WatcherProcess {
  readonly lines: Record<string, unknown>[];
  kill(signal: NodeJS.Signals): void;
  /** The first line of that kind, from now or before. */
  logged(kind: string): Promise<Record<string, unknown>>;
  readonly exited: Promise<unknown>;
}

export async function startWatcherProcess(
  natsUrl: string,
  env: Record<string, string> = {},
  service: "watcher" | "orchestrator" = "watcher",
  onLine: (line: Record<string, unknown>) => void = () => undefined,
): Promise<WatcherProcess> {
  const entry = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));
  const child = fork(entry, [service], {
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: {
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      NATS_URL: natsUrl,
      HISTORY_SHARDS: "2",
      ...(service === "watcher" ? quick : {}),
      ...env,
    },
  });
  const lines: Record<string, unknown>[] = [];
  const listeners = new Set<() => void>();
  if (!child.stderr) throw new Error("no stderr");
  createInterface({ input: child.stderr }).on("line", (line) => {
    const parsed: Record<string, unknown> = line.startsWith("{") ? JSON.parse(line) : { text: line };
    lines.push(parsed);
    onLine(parsed);
    for (const listener of listeners) listener();
  });
  const exited = once(child, "exit");
  keepLog({
    service,
    pid: child.pid ?? 0,
    log: () => lines.map((line) => JSON.stringify(line)).join("\n"),
    end: () => child.exitCode ?? child.signalCode,
  });
  const logged = (kind: string) =>
    new Promise<Record<string, unknown>>((resolve) => {
      const look = () => {
        const found = lines.find((line) => line.kind === kind);
        if (!found) return;
        listeners.delete(look);
        resolve(found);
      };
      listeners.add(look);
      look();
    });
  const ready = new Promise<"ready">((resolve) => child.once("message", () => resolve("ready")));
  const first = await Promise.race([ready, exited]);
  if (first !== "ready") throw new Error(`the ${service} ended: ${first} ${JSON.stringify(lines)}`);
  return { lines, logged, exited, kill: (signal) => child.kill(signal) };
}
