/** One readable line on stderr, never a stack. */
import { isFault } from "../../shared/errors/index.ts";
import { oneLine } from "./output.ts";

export function errorLine(error: unknown, json: boolean): string {
  const { code, message, hint } = parts(error);
  if (json) return JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }) } });
  return `holdfast: ${oneLine(message)}${hint === undefined ? "" : `\n  ${oneLine(hint)}`}`;
}

function parts(error: unknown): { code: string; message: string; hint: string | undefined } {
  const message = error instanceof Error ? error.message : String(error);
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "error";
  return { code, message, hint: isFault(error) ? error.hint : undefined };
}
