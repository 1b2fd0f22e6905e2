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

export const handleOf = <O>(client: Client, instanceId: string, known: boolean): InstanceHandle<O> => ({
  instanceId,
  result: (options) => client.result<O>(instanceId, { ...options, known }),
  status: () => client.status(instanceId),
  signal: (name, payload) => client.signal(instanceId, name, payload),
  cancel: (reason) => client.cancel(instanceId, reason),
  terminate: (reason) => client.terminate(instanceId, reason),
  history: () => client.history(instanceId),
});
