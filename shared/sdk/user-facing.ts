/** Turns the engine's own Fault into the HoldfastError that users see. */
import { HoldfastError, isFault } from "../errors/index.ts";

function userError(error: unknown): unknown {
  if (!isFault(error)) return error;
  return new HoldfastError({
    code: error.code,
    message: error.hint === undefined ? error.message : `${error.message}. ${error.hint}`,
    retryable: error.kind === "transient",
    details: error.details,
    cause: error,
  });
}

export async function userFacing<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw userError(error);
  }
}

export const notFound = (instanceId: string): HoldfastError =>
  new HoldfastError({ code: "instance_not_found", message: `there is no instance ${instanceId}` });

export const ended = (instanceId: string, status: string): HoldfastError =>
  new HoldfastError({
    code: "instance_ended",
    message: `instance ${instanceId} has ended (${status})`,
    details: { status },
  });

export const notBegun = (instanceId: string): HoldfastError =>
  new HoldfastError({
    code: "instance_pending",
    message: `instance ${instanceId} has not begun: its input is not known yet`,
    retryable: true,
  });

export const sameId = (instanceId: string): HoldfastError =>
  new HoldfastError({
    code: "invalid_id",
    message: `${instanceId} cannot be started again under its own id: give another id, or none`,
  });
