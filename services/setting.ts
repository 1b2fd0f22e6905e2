/** The building blocks of settings. */
import { z } from "zod";
import { isFault } from "../shared/errors/index.ts";
import { parseDuration } from "../shared/runtime/index.ts";

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`)
    .meta({ rule: `whole number, ${min} to ${max}` });

const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) =>
  z.enum(values, `must be one of ${values.join(", ")}`).meta({ rule: values.join(", ") });

/** Undefined if the text is not a duration. */
const milliseconds = (text: string): number | undefined => {
  try {
    return parseDuration(text, "value");
  } catch (error) {
    if (isFault(error)) return undefined;
    throw error;
  }
};

/** `250ms`, `5s`, `30d`, or milliseconds; checked by parsing, so that the error names the variable. */
const duration = (
  minMs: number,
  maxMs: number,
  { wholeSeconds = false, orForever = false }: { wholeSeconds?: boolean; orForever?: boolean } = {},
) =>
  z
    .string()
    .transform((text, context) => {
      if (orForever && text === "forever") return Number.POSITIVE_INFINITY;
      const ms = milliseconds(text);
      const valid = ms !== undefined && ms >= minMs && ms <= maxMs;
      if (valid && (!wholeSeconds || ms % 1000 === 0)) return ms;
      const rule = valid
        ? "whole seconds"
        : `${orForever ? "forever, or " : ""}a duration like 30s, from ${minMs} to ${maxMs} ms`;
      context.addIssue({ code: "custom", message: `must be ${rule}` });
      return z.NEVER;
    })
    .meta(orForever ? { rule: "a duration like 30s, or `forever`" } : { durationMs: [minMs, maxMs] });

/**
 * Building blocks for the settings of a single service. Every value arrives as text. docs/configuration.md
 * shows a setting's `rule` and its `describe` text.
 */
export const setting = {
  wholeNumber,
  oneOf,
  duration,
  text: z.string(),
  flag: z
    .enum(["true", "false", "1", "0"], "must be true or false")
    .transform((value) => value === "true" || value === "1")
    .meta({ rule: "true or false" }),
  /** `a,b,c` */
  list: z
    .string()
    .transform((value) =>
      value
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== ""),
    )
    .meta({ rule: "names, separated by commas" }),
};
