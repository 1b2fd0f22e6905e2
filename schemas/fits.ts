/**
 * Whether a value parsed from JSON is already what its schema would return. Most of what comes off the wire is, and
 * looking costs a fraction of parsing, which copies every object. What is not sure is parsed.
 *
 * FITS-1 A value that fits is what `schema.parse` returns, but for the order of its keys.
 */
import type { z } from "zod";

/** `rejected`: no parse of it would succeed. */
export type Fit = "same" | "rejected" | "unsure";
type Look = (value: unknown) => Fit;

const looks = new WeakMap<z.core.$ZodType, Look>();
const unsure: Look = () => "unsure";
const when =
  (test: (value: unknown) => boolean): Look =>
  (value) =>
    test(value) ? "same" : "rejected";

export const fits = <S extends z.ZodType>(schema: S, value: unknown): value is z.output<S> =>
  fitOf(schema, value) === "same";

export const fitOf = (schema: z.ZodType, value: unknown): Fit => lookOf(schema)(value);

/** For a schema that this file cannot see through, because it transforms. */
export function looksLike(schema: z.ZodType, look: Look): void {
  looks.set(schema, look);
}

function lookOf(schema: z.core.$ZodType): Look {
  const known = looks.get(schema);
  if (known) return known;
  // A schema may contain itself.
  looks.set(schema, (value) => lookOf(schema)(value));
  const look = made(schema);
  looks.set(schema, look);
  return look;
}

function made(schema: z.core.$ZodType): Look {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const look = ofType(def);
  const checks = (def.checks ?? []).map(({ _zod }) => ofCheck((_zod as z.core.$ZodChecks["_zod"]).def));
  if (checks.length === 0) return look;
  return (value) => {
    const first = look(value);
    if (first !== "same") return first;
    for (const check of checks) {
      const verdict = check(value);
      if (verdict !== "same") return verdict;
    }
    return "same";
  };
}

function ofType(def: z.core.$ZodTypes["_zod"]["def"]): Look {
  switch (def.type) {
    case "unknown":
      return () => "same";
    case "string":
      return "format" in def ? unsure : when((value) => typeof value === "string");
    case "number":
      if (!("format" in def)) return when(Number.isFinite);
      return def.format === "safeint" ? when(Number.isSafeInteger) : unsure;
    case "boolean":
      return when((value) => typeof value === "boolean");
    case "null":
      return when((value) => value === null);
    case "literal": {
      const values = new Set<unknown>(def.values);
      return when((value) => values.has(value));
    }
    case "enum": {
      const values = new Set<unknown>(Object.values(def.entries));
      return when((value) => values.has(value));
    }
    case "optional": {
      const inner = lookOf(def.innerType);
      return (value) => (value === undefined ? "same" : inner(value));
    }
    case "nullable": {
      const inner = lookOf(def.innerType);
      return (value) => (value === null ? "same" : inner(value));
    }
    case "default": {
      const inner = lookOf(def.innerType);
      return (value) => (value === undefined ? "unsure" : inner(value));
    }
    case "lazy":
      return (value) => lookOf(def.getter())(value);
    case "array": {
      const inner = lookOf(def.element);
      return (value) => (Array.isArray(value) ? ofEach(value, inner) : "rejected");
    }
    case "object":
      return def.catchall?._zod.def.type === "unknown" ? ofObject(def.shape) : unsure;
    case "record":
      return ofRecord(lookOf(def.keyType), lookOf(def.valueType));
    case "union":
      return "discriminator" in def
        ? ofKinds(String(def.discriminator), def.options)
        : ofUnion(def.options.map(lookOf));
    default:
      return unsure;
  }
}

function ofCheck(def: z.core.$ZodChecks["_zod"]["def"]): Look {
  switch (def.check) {
    case "string_format": {
      const { pattern, format } = def;
      if (format !== "regex" || !pattern || pattern.global || pattern.sticky) return unsure;
      return when((value) => pattern.test(String(value)));
    }
    case "min_length":
      return when((value) => lengthOf(value) >= def.minimum);
    case "max_length":
      return when((value) => lengthOf(value) <= def.maximum);
    case "length_equals":
      return when((value) => lengthOf(value) === def.length);
    case "greater_than":
      return when((value) => Number(value) > Number(def.value) || (def.inclusive && value === def.value));
    case "less_than":
      return when((value) => Number(value) < Number(def.value) || (def.inclusive && value === def.value));
    default:
      return unsure;
  }
}

const lengthOf = (value: unknown): number =>
  typeof value === "string" || Array.isArray(value) ? value.length : Number.NaN;

function ofEach(values: readonly unknown[], inner: Look): Fit {
  for (const value of values) {
    const verdict = inner(value);
    if (verdict !== "same") return verdict;
  }
  return "same";
}

type Entries = Record<string, unknown>;
const isObject = (value: unknown): value is Entries =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function ofObject(shape: Readonly<Record<string, z.core.$ZodType>>): Look {
  const keys = Object.keys(shape);
  const fields = keys.map((key) => {
    const field = shape[key] as z.core.$ZodType;
    return { look: lookOf(field), required: field._zod.optin === undefined };
  });
  return (value) => {
    if (!isObject(value)) return "rejected";
    if (Object.hasOwn(value, "__proto__")) return "unsure";
    for (let index = 0; index < keys.length; index++) {
      const field = fields[index] as (typeof fields)[number];
      const found = value[keys[index] as string];
      if (found === undefined && field.required) return "unsure";
      const verdict = field.look(found);
      if (verdict !== "same") return verdict;
    }
    return "same";
  };
}

const ofRecord =
  (key: Look, inner: Look): Look =>
  (value) => {
    if (!isObject(value)) return "rejected";
    for (const name of Object.keys(value)) {
      if (name === "__proto__" || key(name) !== "same") return "unsure";
      const verdict = inner(value[name]);
      if (verdict !== "same") return verdict;
    }
    return "same";
  };

/** The first option that does not reject it decides, as in a parse. */
const ofUnion =
  (options: readonly Look[]): Look =>
  (value) => {
    for (const option of options) {
      const verdict = option(value);
      if (verdict !== "rejected") return verdict;
    }
    return "rejected";
  };

function ofKinds(discriminator: string, options: readonly z.core.$ZodType[]): Look {
  const byKind = new Map<unknown, Look>();
  for (const option of options)
    for (const kind of option._zod.propValues?.[discriminator] ?? []) byKind.set(kind, lookOf(option));
  return (value) => (isObject(value) ? (byKind.get(value[discriminator]) ?? unsure)(value) : "rejected");
}
