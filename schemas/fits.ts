/**
 * Checks if a value parsed from JSON is already what its schema would return. Most messages are, and the check costs
 * a fraction of a parse, which copies every object. If the check is `unsure`, the caller parses the value.
 *
 * FITS-1 A value that fits is what `schema.parse` returns, but for the order of its keys.
 */
import type { z } from "zod";

/** `rejected`: the schema refuses the value. */
type Fit = "same" | "rejected" | "unsure";
type FitCheck = (value: unknown) => Fit;

const fitChecks = new WeakMap<z.core.$ZodType, FitCheck>();
const unsure: FitCheck = () => "unsure";
const when =
  (test: (value: unknown) => boolean): FitCheck =>
  (value) =>
    test(value) ? "same" : "rejected";

export const fits = <S extends z.ZodType>(schema: S, value: unknown): value is z.output<S> =>
  fitOf(schema, value) === "same";

export const fitOf = (schema: z.ZodType, value: unknown): Fit => fitCheckOf(schema)(value);

/** Registers the check of a schema that transforms its value: this file cannot derive it. */
export function checkFitBy(schema: z.ZodType, check: FitCheck): void {
  fitChecks.set(schema, check);
}

function fitCheckOf(schema: z.core.$ZodType): FitCheck {
  const known = fitChecks.get(schema);
  if (known) return known;
  // A schema may contain itself.
  fitChecks.set(schema, (value) => fitCheckOf(schema)(value));
  const check = buildFitCheck(schema);
  fitChecks.set(schema, check);
  return check;
}

function buildFitCheck(schema: z.core.$ZodType): FitCheck {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const typeCheck = checkOfType(def);
  const checks = (def.checks ?? []).map(({ _zod }) => checkOfRule((_zod as z.core.$ZodChecks["_zod"]).def));
  if (checks.length === 0) return typeCheck;
  return (value) => {
    const first = typeCheck(value);
    if (first !== "same") return first;
    for (const check of checks) {
      const verdict = check(value);
      if (verdict !== "same") return verdict;
    }
    return "same";
  };
}

function checkOfType(def: z.core.$ZodTypes["_zod"]["def"]): FitCheck {
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
      const inner = fitCheckOf(def.innerType);
      return (value) => (value === undefined ? "same" : inner(value));
    }
    case "nullable": {
      const inner = fitCheckOf(def.innerType);
      return (value) => (value === null ? "same" : inner(value));
    }
    case "default": {
      const inner = fitCheckOf(def.innerType);
      return (value) => (value === undefined ? "unsure" : inner(value));
    }
    case "lazy":
      return (value) => fitCheckOf(def.getter())(value);
    case "array": {
      const inner = fitCheckOf(def.element);
      return (value) => (Array.isArray(value) ? fitOfEach(value, inner) : "rejected");
    }
    case "object":
      return def.catchall?._zod.def.type === "unknown" ? checkOfObject(def.shape) : unsure;
    case "record":
      return checkOfRecord(fitCheckOf(def.keyType), fitCheckOf(def.valueType));
    case "union":
      return "discriminator" in def
        ? checkOfKinds(String(def.discriminator), def.options)
        : checkOfUnion(def.options.map(fitCheckOf));
    default:
      return unsure;
  }
}

function checkOfRule(def: z.core.$ZodChecks["_zod"]["def"]): FitCheck {
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

function fitOfEach(values: readonly unknown[], inner: FitCheck): Fit {
  for (const value of values) {
    const verdict = inner(value);
    if (verdict !== "same") return verdict;
  }
  return "same";
}

type Entries = Record<string, unknown>;
const isObject = (value: unknown): value is Entries =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function checkOfObject(shape: Readonly<Record<string, z.core.$ZodType>>): FitCheck {
  const keys = Object.keys(shape);
  const fields = keys.map((key) => {
    const field = shape[key] as z.core.$ZodType;
    return { check: fitCheckOf(field), required: field._zod.optin === undefined };
  });
  return (value) => {
    if (!isObject(value)) return "rejected";
    if (Object.hasOwn(value, "__proto__")) return "unsure";
    for (let index = 0; index < keys.length; index++) {
      const field = fields[index] as (typeof fields)[number];
      const found = value[keys[index] as string];
      if (found === undefined && field.required) return "unsure";
      const verdict = field.check(found);
      if (verdict !== "same") return verdict;
    }
    return "same";
  };
}

const checkOfRecord =
  (key: FitCheck, inner: FitCheck): FitCheck =>
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
const checkOfUnion =
  (options: readonly FitCheck[]): FitCheck =>
  (value) => {
    for (const option of options) {
      const verdict = option(value);
      if (verdict !== "rejected") return verdict;
    }
    return "rejected";
  };

function checkOfKinds(discriminator: string, options: readonly z.core.$ZodType[]): FitCheck {
  const byKind = new Map<unknown, FitCheck>();
  for (const option of options)
    for (const kind of option._zod.propValues?.[discriminator] ?? []) byKind.set(kind, fitCheckOf(option));
  return (value) => (isObject(value) ? (byKind.get(value[discriminator]) ?? unsure)(value) : "rejected");
}
