import { isFault, toFailure } from "../errors/index.ts";
import type { Runtime } from "./runtime.ts";

interface FaultWords {
  /** The code, whatever the error's own is. */
  code?: string;
  /** The code of an error that is no fault of the engine. Default: the error's own. */
  otherwise?: string;
  /** Stands before the error's message: what did not work, or on what. */
  about?: string;
}

/** Announces an error that this process survives. `where`: the part of the engine that met it. */
export function announceFault(
  runtime: Pick<Runtime, "announce">,
  where: string,
  error: unknown,
  { code, otherwise, about }: FaultWords = {},
): void {
  const failure = toFailure(error);
  runtime.announce({
    kind: "fault",
    where,
    code: code ?? (isFault(error) ? error.code : (otherwise ?? failure.code)),
    message: about === undefined ? failure.message : `${about}: ${failure.message}`,
    error,
  });
}
