/** Turns the end of an instance into a value or a thrown error. */
import type { Failure, InstanceSummary } from "../../../schemas/index.ts";
import { CancelledError, fromFailure, HoldfastError, TimeoutError } from "../../errors/index.ts";
import type { InstanceView } from "../client/instances.ts";

export function outputOf(view: InstanceView): unknown {
  switch (view.status) {
    case "completed":
      return view.output;
    case "cancelled":
      throw new CancelledError(view.error?.message ?? `instance ${view.instanceId} was cancelled`);
    case "terminated":
    case "failed":
      throw failureOf(view, view.status);
    case "pending":
    case "running":
    case "parked":
      throw new HoldfastError({
        code: "instance_running",
        message: `instance ${view.instanceId} is ${view.status}`,
      });
  }
}

function failureOf({ instanceId, error }: InstanceView, code: string): HoldfastError {
  const failure: Failure = error ?? { code, message: `instance ${instanceId} was ${code}`, retryable: false };
  return fromFailure(failure);
}

export function tooLate(
  instanceId: string,
  summary: InstanceSummary | undefined,
  signal: AbortSignal | undefined,
): HoldfastError {
  if (signal?.aborted) return new CancelledError(`waiting for ${instanceId} was given up`);
  const status = summary?.status ?? "pending";
  return new TimeoutError({
    code: "result_timeout",
    message: `instance ${instanceId} has not ended in time (${status})`,
    details: { instanceId, status },
  });
}
