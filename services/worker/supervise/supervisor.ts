/**
 * `WORKER_SUPERVISED=true`: this process starts the worker as its child and waits. The kernel informs a
 * parent at once how its child ended, also after the out-of-memory killer: then the supervisor reports the
 * worker's sessions as lost (D1) and ends as the worker did, so that the container runtime or service
 * manager can start it again.
 *
 * It loads nothing while the worker lives. It does nothing about a worker that is paused or hangs: the
 * lease decides (S5).
 */
import { type ChildProcess, fork } from "node:child_process";
import { constants } from "node:os";
import { executeWill, isWill, type Will } from "./last-will.ts";

const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Resolves with the exit code to end with. `entry` is the command that runs the worker. */
export async function superviseWorker(entry: string, args: readonly string[]): Promise<number> {
  const child = fork(entry, [...args], {
    // The worker's own group: Ctrl-C reaches the supervisor alone, which passes it on once.
    detached: true,
    serialization: "advanced",
    env: { ...process.env, WORKER_SUPERVISED: "child" },
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  let will: Will | undefined;
  child.on("message", (message) => {
    if (isWill(message)) will = message.will;
    else process.send?.(message); // pass on that the worker is ready to the parent process of the supervisor
  });
  const pass = (signal: NodeJS.Signals) => void child.kill(signal);
  const passEnd = () => pass("SIGTERM");
  for (const signal of signals) process.on(signal, pass);
  process.on("disconnect", passEnd);
  const { how, code } = await endOf(child);
  if (code !== 0 && will !== undefined) {
    const lost = await executeWill(will, `its worker process ${how}`);
    const sessions = lost === undefined ? "its sessions end with their leases" : `${lost} sessions were lost`;
    process.stderr.write(
      `${JSON.stringify({ level: "error", service: "worker", id: will.dead.holder, message: `the worker process ${how}; ${sessions}` })}\n`,
    );
  }
  for (const signal of signals) process.off(signal, pass);
  process.off("disconnect", passEnd);
  if (process.connected) process.disconnect();
  return code;
}

function endOf(child: ChildProcess): Promise<{ how: string; code: number }> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      if (child.pid === undefined) resolve({ how: `could not be started: ${error.message}`, code: 1 });
    });
    child.once("exit", (code, signal) =>
      resolve(
        signal
          ? { how: `was ended by ${signal}`, code: 128 + constants.signals[signal] }
          : { how: `ended with exit code ${code}`, code: code ?? 1 },
      ),
    );
  });
}
