/**
 * Finds the step at which an orchestration failed: the step whose failure is the orchestration's error or one
 * of its causes. Pure.
 */
import type { Failure } from "../../../../../schemas/index.ts";
import type { InstanceTimeline, Work } from "../../../../../shared/timeline/index.ts";

export function failedStep(model: InstanceTimeline, error: Failure | undefined): Work | undefined {
  const failed = model.work.filter(({ state, failure }) => state === "failed" && failure !== undefined);
  for (let cause = error; cause; cause = cause.cause) {
    const { code, message } = cause;
    const same = failed.findLast(({ failure }) => failure?.code === code && failure.message === message);
    if (same) return same;
  }
  // Code that throws its own error after a step failed does so in the turn that received the failure.
  const last = failed.at(-1);
  return last?.to === model.last ? last : undefined;
}
