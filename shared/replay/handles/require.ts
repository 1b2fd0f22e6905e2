/**
 * Checks the arguments of code before they are recorded: an event that does not parse would make its history
 * unreadable.
 */

import type { z } from "zod";
import { tokenPattern, tokenRule } from "../../../schemas/index.ts";
import { refuseUnknownOptions } from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import type { Runner } from "../run/runner.ts";

const longestShown = 140;

/** A name or an id that becomes part of a subject: all of them follow one rule. */
export function requireId<S extends z.ZodType<string>>(_brand: S, what: string, value: unknown): z.output<S> {
  if (typeof value === "string" && tokenPattern.test(value)) return value as z.output<S>;
  const text = typeof value === "string" ? value : typeof value;
  const shown = JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown)}…` : text);
  throw new HoldfastError({
    code: "invalid_id",
    message: `${what} ${shown} is not allowed: must be ${tokenRule}`,
  });
}

/** Options with their defaults; the error names the first wrong option. */
export function requireOptions<S extends z.ZodType>(schema: S, what: string, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new HoldfastError({
    code: "invalid_option",
    message: `${what}: ${issue?.path.join(".") || "(value)"}: ${issue?.message}`,
  });
}

/** Histories from before rule 1 may come from code whose options were never checked. */
export function refuseUnknown(
  runner: Pick<Runner, "followsPromises">,
  ...args: Parameters<typeof refuseUnknownOptions>
): void {
  if (runner.followsPromises) refuseUnknownOptions(...args);
}
