/**
 * ACTIVITY-5 A store that is full or away for a while is no failure of user code: storing an output and
 *    fetching an input, a config or a checkpoint are tried again until they succeed or the run is over. They
 *    use up no attempt, and work that is done is not done again.
 */
import { isFault } from "../../shared/errors/index.ts";
import { announceFault, backoffMs, jittered, sleep } from "../../shared/runtime/index.ts";
import type { WorkerDeps } from "./deps.ts";

const backoff = { initialMs: 100, maxMs: 5_000, factor: 2 };

/** Rejects with the fault if it is not transient, or once the signal aborts. */
export async function waitForStore<T>(
  { runtime }: Pick<WorkerDeps, "runtime">,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await act();
    } catch (error) {
      if (!isFault(error, "transient") || signal.aborted) throw error;
      announceFault(runtime, "worker.store", error);
      await sleep(runtime.clock, jittered(backoffMs(backoff, tried), runtime.random), signal);
      if (signal.aborted) throw error;
    }
  }
}
