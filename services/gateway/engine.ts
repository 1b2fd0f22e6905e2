/** What the gateway asks the engine to do. One small seam, so that routes know nothing of subjects. */
import type { Commit, InstanceSummary } from "../../schemas/index.ts";

export type Ended = Pick<InstanceSummary, "instanceId" | "status" | "output" | "error" | "endedAt">;

export interface Engine {
  /** The same id again changes nothing; `created` is false then, where it is known. */
  start(name: string, input: unknown, options: { id?: string | undefined }): Promise<{ instanceId: string }>;
  signal(instanceId: string, event: string, payload: unknown): Promise<void>;
  cancel(instanceId: string, reason?: string): Promise<void>;
  terminate(instanceId: string, reason?: string): Promise<void>;
  status(instanceId: string): Promise<InstanceSummary | undefined>;
  /** Waits for the end, at most so long; undefined where it has not come. */
  ended(instanceId: string, waitMs: number, signal: AbortSignal): Promise<InstanceSummary | undefined>;
  /** All commits of all executions still stored, in order. */
  history(instanceId: string): Promise<Commit[] | undefined>;
  evict(sessionId: string, reason?: string): Promise<void>;
  drain(workerId: string): Promise<void>;
  /** Calls back on every change until stopped. */
  onChange(instanceId: string, listener: () => void): Promise<() => void>;
}
