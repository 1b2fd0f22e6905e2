/** What code hands in, checked before it is recorded: an event that does not parse would make its history unreadable. */
import type { z } from "zod";
import { tokenRule } from "../../../schemas/index.ts";
import { HoldfastError } from "../../errors/index.ts";

const longestShown = 140;

/** A name or an id, which becomes part of a subject. */
export function requireId<S extends z.ZodType>(schema: S, what: string, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const text = typeof value === "string" ? value : typeof value;
  const shown = JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown)}…` : text);
  throw new HoldfastError({
    code: "invalid_id",
    message: `${what} ${shown} is not allowed: must be ${tokenRule}`,
  });
}

/** Options with their defaults; the complaint names the first that is wrong. */
export function requireOptions<S extends z.ZodType>(schema: S, what: string, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new HoldfastError({
    code: "invalid_option",
    message: `${what}: ${issue?.path.join(".") || "(value)"}: ${issue?.message}`,
  });
}
