/**
 * Starts a thread before its setup is known, so that it loads its code while the process still connects.
 */
import { once } from "node:events";
import { MessageChannel, MessagePort, type Worker, type WorkerOptions } from "node:worker_threads";

type Start = (options: Pick<WorkerOptions, "workerData" | "transferList">) => Worker;

/** Starts the thread. The returned function passes the setup to it; every further call starts another thread. */
export function startEarly<Setup>(start: Start): (setup: Setup) => Worker {
  const { port1, port2 } = new MessageChannel();
  const early = start({ workerData: port2, transferList: [port2] });
  // The idle thread must not keep a process alive.
  early.unref();
  let waiting: Worker | undefined = early;
  return (setup) => {
    const thread = waiting;
    if (!thread) return start({ workerData: setup });
    waiting = undefined;
    port1.postMessage(setup);
    port1.close();
    thread.ref();
    return thread;
  };
}

/** Called inside the thread: `workerData` is its setup, or the port by which the setup comes. */
export async function setupOf<Setup>(workerData: Setup | MessagePort): Promise<Setup> {
  if (!(workerData instanceof MessagePort)) return workerData;
  const [setup] = await once(workerData, "message");
  return setup as Setup;
}
