import type { Clock } from "../runtime/index.ts";
import type { Client, ResultOptions } from "./client.ts";
import type { HistoryEntry } from "./history-file.ts";
import type { InstanceView } from "./instances.ts";

/** One instance, as seen by whoever started it or knows its id. */
export interface InstanceHandle<O = unknown> {
  readonly instanceId: string;
  /** Waits for the end. Rejects with the instance's own error where it failed. */
  result(options?: ResultOptions): Promise<O>;
  status(): Promise<InstanceView>;
  signal(name: string, payload?: unknown): Promise<void>;
  cancel(reason?: string): Promise<void>;
  terminate(reason?: string): Promise<void>;
  history(): Promise<HistoryEntry[]>;
}

/** Who asks for the result so soon after the start has most likely come before the end. */
const justStartedMs = 2;

/** `started`: when the start was accepted, monotonic; there is such an instance. */
export const handleOf = <O>(
  client: Client,
  instanceId: string,
  started?: { clock: Clock; at: number },
): InstanceHandle<O> => ({
  instanceId,
  result: (options) => {
    const known = started !== undefined;
    const justStarted = known && started.clock.monotonic() - started.at < justStartedMs;
    return client.result<O>(instanceId, { ...options, known, justStarted });
  },
  status: () => client.status(instanceId),
  signal: (name, payload) => client.signal(instanceId, name, payload),
  cancel: (reason) => client.cancel(instanceId, reason),
  terminate: (reason) => client.terminate(instanceId, reason),
  history: () => client.history(instanceId),
});
