/** Starts the worker, as it was built, with an application and waits until it is ready. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { keepLog } from "./service-logs.ts";

export interface WorkerProcess {
  pid: number;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. */
  exited: Promise<number | string>;
}

export async function startWorkerProcess(
  natsUrl: string,
  appPath: string,
  env: Record<string, string> = {},
): Promise<WorkerProcess> {
  const child = forkWorker({ NATS_URL: natsUrl, HOLDFAST_APP: appPath, ...env });
  const ready = new Promise<"ready">((resolve) => child.process.once("message", () => resolve("ready")));
  const first = await Promise.race([ready, child.exited]);
  if (first !== "ready") throw new Error(`the worker ended with ${first}: ${child.stderr()}`);
  return child;
}

/** Without waiting for anything: for those that are meant to refuse. */
export function forkWorker(env: Record<string, string>): WorkerProcess & { process: ChildProcess } {
  const entry = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));
  const child = fork(entry, ["worker"], {
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env },
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  keepLog({
    service: "worker",
    pid: child.pid ?? 0,
    log: () => stderr,
    end: () => child.exitCode ?? child.signalCode,
  });
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  return {
    process: child,
    pid: child.pid ?? 0,
    stderr: () => stderr,
    kill: (signal) => child.kill(signal),
    exited,
  };
}
