/** What settings are made of. */
import { z } from "zod";

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`)
    .meta({ rule: `whole number, ${min} to ${max}` });

const oneOf = <const T extends readonly [string, ...string[]]>(...values: T) =>
  z.enum(values, `must be one of ${values.join(", ")}`).meta({ rule: values.join(", ") });

/**
 * Building blocks for the settings of a single service. Every value arrives as text. `rule` and what a setting's
 * `describe` says are what docs/configuration.md shows of it.
 */
export const setting = {
  wholeNumber,
  oneOf,
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
