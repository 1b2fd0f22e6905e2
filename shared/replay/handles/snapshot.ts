/** Values as the history records them, and promises whose rejection must not end the process. */
import { HoldfastError } from "../../errors/index.ts";
import { toPayload } from "../run/to-payload.ts";

/** The rejection of a durable promise that no code awaits must not end the process. */
export const handled = () => undefined;

/** A rejected promise that need not be awaited. */
export function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject(error);
  promise.catch(handled);
  return promise;
}

/** Refuses the promise of a side effect that awaits. */
export function synchronous<T>(value: T): T {
  if (!(value instanceof Promise)) return value;
  value.catch(handled);
  throw new HoldfastError({
    code: "not_serialisable",
    message: "a side effect must not await: put what takes time into an activity",
  });
}

/** `what` names the value in the error if it cannot be recorded. */
export function snapshot(value: unknown, what: string): ReturnType<typeof toPayload> {
  try {
    return toPayload(value);
  } catch (error) {
    const { code, message } =
      error instanceof HoldfastError ? error : { code: "not_serialisable", message: String(error) };
    throw new HoldfastError({ code, message: `${what}: ${message}`, cause: error });
  }
}
