/** Messages as a later version would write them, and whether ours have anything their schema does not name. */
import { z } from "zod";
import type { Tap } from "../nats/tapped-bus.ts";
import { answeredAs, wiredAs, wiredHeaders } from "./wire-schemas.ts";

/** Nested, so that a reader that copies one level only is found out. */
const laterField = { name: "laterVersion", value: { since: 9, list: [{ more: true }] } };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What a schema says of a value, down to its objects. Users' own values are `unknown` and are not looked into. */
function walk(schema: z.core.$ZodType, value: unknown, visit: Visit, path: string): unknown {
  if (value === undefined) return value;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return walk(schema.def.innerType, value, visit, path);
  if (schema instanceof z.ZodPipe) return walk(schema.def.in, value, visit, path);
  if (schema instanceof z.ZodUnion || schema instanceof z.ZodDiscriminatedUnion) {
    const fitting = schema.def.options.find((option) => z.safeParse(option, value).success);
    return fitting ? walk(fitting, value, visit, path) : value;
  }
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((one, n) => walk(schema.def.element, one, visit, `${path}[${n}]`));
  if (!isObject(value)) return value;
  if (schema instanceof z.ZodRecord) {
    const { valueType } = schema.def;
    return mapped(value, (one, key) => walk(valueType, one, visit, `${path}.${key}`));
  }
  if (!(schema instanceof z.ZodObject)) return value;
  const { shape } = schema;
  const inside = mapped(value, (one, key) => {
    const field: z.core.$ZodType | undefined = shape[key];
    return field ? walk(field, one, visit, `${path}.${key}`) : one;
  });
  return visit(inside, Object.keys(shape), path);
}

type Visit = (value: Record<string, unknown>, known: readonly string[], path: string) => unknown;

const mapped = (value: Record<string, unknown>, fn: (one: unknown, key: string) => unknown) =>
  Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fn(one, key)]));

/** One more field in every object, at every depth. The payload of `undefined` is `{}` and stays so (schemas/README.md). */
export const asLaterVersion = (schema: z.ZodType, value: unknown): unknown =>
  walk(
    schema,
    value,
    (object, known) => {
      const isUndefined = known.length === 1 && known[0] === "json" && Object.keys(object).length === 0;
      return isUndefined ? object : { ...object, [laterField.name]: laterField.value };
    },
    "",
  );

const text = new TextDecoder();
const changed = (schema: z.ZodType, json: string): string =>
  JSON.stringify(asLaterVersion(schema, JSON.parse(json)));

/** Everything that is said, with the fields of a later version. */
export const asLater: Tap = ({ subject, body, headers, answer }) => {
  const wired = answer ? answeredAs(subject) : wiredAs(subject);
  const later: Record<string, string> = { ...headers };
  for (const [name, { schema }] of Object.entries(wiredHeaders)) {
    const value = later[name];
    if (value !== undefined) later[name] = changed(schema, value);
  }
  if (!wired) return { body, headers: later };
  return { body: Buffer.from(changed(wired.schema, text.decode(body))), headers: later };
};

/** Paths of fields that the schema does not name. */
export function strangeFields(schema: z.ZodType, value: unknown): string[] {
  const strange: string[] = [];
  walk(
    schema,
    value,
    (object, known, path) => {
      strange.push(
        ...Object.keys(object)
          .filter((key) => !known.includes(key))
          .map((key) => `${path}.${key}`),
      );
      return object;
    },
    "",
  );
  return strange;
}
