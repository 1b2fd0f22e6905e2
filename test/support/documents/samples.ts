/** Values a schema accepts: every branch of every union, with all optional fields and with none. */
import { z } from "zod";

const strings = ["sample", "a".repeat(64), "2026-01-01", ""];
const numbers = [1, 1000, 0, 2];
const anything = { text: "ä", list: [1, null, { deep: true }] };
/** A failure has a cause that is a failure: somewhere it ends. */
const deepest = 6;

/** At least one; the first is whole, the last has the fewest fields. */
export function samplesOf(schema: z.core.$ZodType, depth = 0): unknown[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return samplesOf(schema.def.innerType, depth);
  if (schema instanceof z.ZodPipe) return samplesOf(schema.def.in, depth);
  if (schema instanceof z.ZodUnion || schema instanceof z.ZodDiscriminatedUnion)
    return schema.def.options.flatMap((option) => samplesOf(option, depth));
  if (schema instanceof z.ZodObject) return objects(schema, depth);
  if (schema instanceof z.ZodArray) return [samplesOf(schema.def.element, depth + 1)];
  if (schema instanceof z.ZodRecord) return [{ sample: samplesOf(schema.def.valueType, depth + 1)[0] }];
  if (schema instanceof z.ZodEnum) return Object.values(schema.def.entries);
  if (schema instanceof z.ZodLiteral) return [...schema.def.values];
  if (schema instanceof z.ZodBoolean) return [true, false];
  if (schema instanceof z.ZodUnknown) return [anything];
  const fitting = [...strings, ...numbers].filter((value) => z.safeParse(schema, value).success);
  if (fitting.length === 0) throw new Error(`no sample for ${schema._zod.def.type}`);
  return fitting.slice(0, 1);
}

function objects(schema: z.ZodObject, depth: number): unknown[] {
  const fields = Object.entries<z.core.$ZodType>(schema.shape);
  const required = fields.filter(([, field]) => !z.safeParse(field, undefined).success);
  const inside = (list: typeof fields) =>
    list.map(([name, field]) => [name, samplesOf(field, depth + 1)] as const);
  const fewest = Object.fromEntries(inside(required).map(([name, values]) => [name, values.at(-1)]));
  if (depth >= deepest) return [fewest];
  const all = inside(fields);
  const most = Math.max(1, ...all.map(([, values]) => values.length));
  const whole = Array.from({ length: most }, (_, n) =>
    Object.fromEntries(all.map(([name, values]) => [name, values[n % values.length]])),
  );
  return [...whole, fewest];
}
