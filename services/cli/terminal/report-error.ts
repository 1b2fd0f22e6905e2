/** Prints an error as one readable line on stderr, the remedy below it, never a stack. */
import { meaningOf } from "../../../shared/errors/codes/index.ts";
import { isFault, messageOf } from "../../../shared/errors/index.ts";
import { oneLine } from "./text.ts";

export function errorLine(error: unknown, json: boolean): string {
  const { code, message, hint } = parts(error);
  if (json) return JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }) } });
  return `holdfast: ${oneLine(message)} (${code})${hint === undefined ? "" : `\n  ${oneLine(hint)}`}`;
}

interface Parts {
  code: string;
  message: string;
  hint: string | undefined;
}

function parts(error: unknown): Parts {
  // The client rephrases the engine's faults for users; here both texts are available.
  const fault = isFault(error)
    ? error
    : error instanceof Error && isFault(error.cause)
      ? error.cause
      : undefined;
  if (fault) return { code: fault.code, message: fault.message, hint: fault.hint ?? remedyOf(fault.code) };
  const message = messageOf(error);
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "error";
  return { code, message, hint: remedyOf(code) };
}

/** Leaves out remedies that only point at the message or say that there is nothing to do. */
function remedyOf(code: string): string | undefined {
  const remedy = meaningOf(code)?.remedy;
  return remedy === undefined || /^(The message|Nothing)\b/.test(remedy) ? undefined : remedy;
}
