/**
 * The heartbeat key of a run, in the lease bucket. When it expires, the run sent no heartbeat in time.
 *
 * BEAT-1 The key is written when a run with a heartbeat timeout begins and again with its beats, and lives
 *    for the timeout: only a beat of the code renews it, and the end of the run removes it. So it expires if
 *    the code is silent and if its worker is dead, paused or cut off, however long the wait for
 *    acknowledgements is.
 */
import type { ActivityTask, Failure } from "../../schemas/index.ts";
import { tokenPattern } from "../../schemas/index.ts";
import type { Attempt } from "../bus/index.ts";
import { derivedCapability } from "../capabilities/index.ts";

/**
 * Identifies the run, with all that the report of its silence needs: an expiry marker has only its key.
 */
export interface BeatAddress extends Attempt {
  readonly name: string;
  readonly heartbeatMs: number;
  /** The capability for the report of the silence (C1). Undefined if the task had none. */
  readonly capability?: string | undefined;
}

export const beatKeys = {
  all: "beat.>",
  of: ({ instanceId, execution, of, attempt, name, heartbeatMs, capability }: BeatAddress): string =>
    `beat.${instanceId}.${execution}.${of}.${attempt}.${name}.${heartbeatMs}${capability ? `.${capability}` : ""}`,
  parse(key: string): BeatAddress | undefined {
    const [beat, instanceId = "", execution, of, attempt, name = "", heartbeatMs, capability, ...rest] =
      key.split(".");
    const numbers = [execution, of, attempt, heartbeatMs].map(Number);
    const isKey =
      beat === "beat" && rest.length === 0 && tokenPattern.test(instanceId) && tokenPattern.test(name);
    if (!isKey || !numbers.every((number) => Number.isSafeInteger(number) && number > 0)) return undefined;
    const [e = 0, o = 0, a = 0, ms = 0] = numbers;
    return { instanceId, execution: e, of: o, attempt: a, name, heartbeatMs: ms, capability };
  },
};

/** Undefined if the task has no heartbeat timeout. */
export function beatAddress(task: ActivityTask): BeatAddress | undefined {
  const { instanceId, execution, of, attempt, name } = task;
  const { heartbeatMs } = task.timeouts;
  if (heartbeatMs === undefined) return undefined;
  const capability = task.capability && derivedCapability(task.capability, "beat");
  return { instanceId, execution, of, attempt, name, heartbeatMs, capability };
}

/** Allowance for a beat that came in time and was stored a little later. */
const slackMs = 250;

/** The server counts TTLs in whole seconds. */
export const beatTtlMs = (heartbeatMs: number): number => Math.ceil((heartbeatMs + slackMs) / 1000) * 1000;

/** The failure of a silent run; the same from its worker and from the watcher. */
export const silenceFailure = (name: string, heartbeatMs: number): Failure => ({
  code: "timeout",
  message: `${name} sent no heartbeat for ${heartbeatMs} ms`,
  retryable: true,
  details: { timeout: "heartbeat" },
});
