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

const milliseconds = (text: string, minMs: number, maxMs: number): number | undefined => {
  try {
    const ms = parseDuration(text, "value");
    return ms >= minMs && ms <= maxMs ? ms : undefined;
  } catch (error) {
    if (isFault(error)) return undefined;
    throw error;
  }
};

/** `5s`, `30d`, or `forever`; checked by parsing, so that the error names the variable. */
const durationOrForever = (minMs: number, maxMs: number) =>
  z
    .string()
    .transform((text, context) => {
      const ms = text === "forever" ? Number.POSITIVE_INFINITY : milliseconds(text, minMs, maxMs);
      if (ms !== undefined) return ms;
      const message = `must be forever, or a duration like 30s, from ${minMs} to ${maxMs} ms`;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .meta({ rule: "a duration like 30s, or `forever`" });

/** `5s`, `30d`. */
const duration = (minMs: number, maxMs: number) =>
  z
    .string()
    .transform((text, context) => {
      const ms = milliseconds(text, minMs, maxMs);
      if (ms !== undefined) return ms;
      context.addIssue({
        code: "custom",
        message: `must be a duration like 30s, from ${minMs} to ${maxMs} ms`,
      });
      return z.NEVER;
    })
    .meta({ durationMs: [minMs, maxMs] });

/**
 * Building blocks for the settings of a single service. Every value arrives as text. docs/configuration.md
 * shows a setting's `rule` and its `describe` text.
 */
export const setting = {
  wholeNumber,
  oneOf,
  duration,
  durationOrForever,
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
