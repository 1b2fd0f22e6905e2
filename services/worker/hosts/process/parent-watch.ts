/**
 * A thread of a process host that ends the host with its worker, also while user code blocks the host's event
 * loop. A worker that died has left its will here: the thread executes it first, so that sessions are lost at
 * once and not when their leases expire (D1).
 */
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { executeWill, type Will } from "../../supervise/last-will.ts";

/** `channel closed`: the worker died, or has let go of this host. */
export type ToParentWatch = { kind: "will"; will: Will } | { kind: "channel closed" };

const lookEveryMs = 100;
/** The kernel closes a dying process's files before it gives its children another parent. */
const diesWithinMs = 500;
const lookAgainMs = 2;

const worker = workerData as number;
let will: Will | undefined;
let ending = false;

const isGone = () => process.ppid !== worker;

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  try {
    for (let waited = 0; !isGone() && waited < diesWithinMs; waited += lookAgainMs) await delay(lookAgainMs);
    // Without this proof the worker may be alive, and its leases are its own.
    if (isGone() && will !== undefined) await executeWill(will, "its worker process has ended");
  } finally {
    process.kill(-process.pid, "SIGKILL");
  }
}

parentPort?.on("message", (message: ToParentWatch) => {
  if (message.kind === "will") will = message.will;
  else void end();
});
setInterval(() => {
  if (isGone()) void end();
}, lookEveryMs);
