/**
 * Users' values as shapes, for callers who may not see values (GATEWAY-7). The answer's schema says which
 * parts are users' values: parts it leaves open (`z.unknown()`), payloads, and the messages of errors and
 * losses, which users' code writes. A field that is added later is hidden unless its schema says what it is.
 */
import { z } from "zod";
import { Failure, LossDetail, Payload } from "../../../schemas/index.ts";

type Hide = (value: unknown) => unknown;

const mostKeys = 100;
const mostItems = 3;
const deepest = 12;

/** `{"name": "Ada", "age": 36}` becomes `{"name": "text of 3", "age": "number"}`. */
export function shapeOf(value: unknown, depth = 0): unknown {
  if (value === null || value === undefined) return value;
  if (typeof value === "string") return `text of ${value.length}`;
  if (typeof value !== "object") return typeof value;
  if (depth >= deepest) return "deeper than is shown";
  if (Array.isArray(value)) {
    const shapes = value.slice(0, mostItems).map((item) => shapeOf(item, depth + 1));
    return value.length > mostItems ? [...shapes, `and ${value.length - mostItems} more`] : shapes;
  }
  const entries = Object.entries(value);
  return Object.fromEntries([
    ...entries.slice(0, mostKeys).map(([key, item]) => [key, shapeOf(item, depth + 1)]),
    ...(entries.length > mostKeys ? [["…", `and ${entries.length - mostKeys} more`]] : []),
  ]);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const hideFailure: Hide = (value) => {
  if (!isObject(value)) return value;
  const { message, details: _, stack: _s, cause, ...rest } = value;
  return {
    ...rest,
    message: shapeOf(message),
    ...(cause === undefined ? {} : { cause: hideFailure(cause) }),
  };
};

/** Schemas whose values are hidden in a way of their own; `shown`: not at all. */
const special = new Map<z.core.$ZodType, Hide | "shown">([
  [
    Payload,
    (value) => (isObject(value) && "json" in value ? { ...value, json: shapeOf(value.json) } : value),
  ],
  [Failure, hideFailure],
  [LossDetail, (value) => shapeOf(value)],
]);

/** Marks text that may contain users' values: it is hidden like a value. */
export function usersText<S extends z.ZodType>(schema: S): S {
  special.set(schema, (value) => shapeOf(value));
  return schema;
}

/** Marks an open schema as free of users' values. */
export function noUsersValue<S extends z.ZodType>(schema: S): S {
  special.set(schema, "shown");
  return schema;
}

const hiders = new WeakMap<z.core.$ZodType, Hide | "nothing" | "under way">();

/** Undefined: no part of such an answer is a user's value. */
export function hiderOf(schema: z.core.$ZodType): Hide | undefined {
  const known = hiders.get(schema);
  // A schema that contains itself.
  if (known === "under way") return (value) => hiderOf(schema)?.(value) ?? value;
  if (known !== undefined) return known === "nothing" ? undefined : known;
  hiders.set(schema, "under way");
  const made = makeHider(schema);
  hiders.set(schema, made ?? "nothing");
  return made;
}

function makeHider(schema: z.core.$ZodType): Hide | undefined {
  const own = special.get(schema);
  if (own !== undefined) return own === "shown" ? undefined : own;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "unknown":
    case "any":
      return (value) => shapeOf(value);
    case "optional":
    case "nullable":
    case "default":
    case "prefault":
    case "readonly":
    case "catch":
    case "nonoptional":
      return hiderOf(def.innerType);
    case "pipe":
      return hiderOf(def.out) ?? hiderOf(def.in);
    case "lazy":
      return hiderOf(def.getter());
    case "array": {
      const item = hiderOf(def.element);
      return item && ((value) => (Array.isArray(value) ? value.map(item) : value));
    }
    case "record": {
      const item = hiderOf(def.valueType);
      return item && ((value) => (isObject(value) ? mapEntries(value, () => item) : value));
    }
    case "object":
      return objectHider(def.shape, def.catchall !== undefined && def.catchall._zod.def.type !== "never");
    case "union":
      return unionHider(def.options, "discriminator" in def ? String(def.discriminator) : undefined);
    default:
      return undefined;
  }
}

/** `open`: fields that the schema does not name may come along. */
function objectHider(shape: Readonly<Record<string, z.core.$ZodType>>, open: boolean): Hide | undefined {
  const fields = new Map(Object.entries(shape).map(([key, field]) => [key, hiderOf(field)]));
  if (!open && [...fields.values()].every((hide) => hide === undefined)) return undefined;
  return (value) =>
    isObject(value)
      ? mapEntries(value, (key) => (fields.has(key) ? fields.get(key) : (unnamed) => shapeOf(unnamed)))
      : value;
}

/** Hides by the member that the value names: histories have thousands of events. */
function kindHider(options: readonly z.core.$ZodType[], discriminator: string): Hide {
  const byKind = new Map<unknown, Hide | undefined>();
  for (const option of options) {
    for (const kind of option._zod.propValues?.[discriminator] ?? []) byKind.set(kind, hiderOf(option));
  }
  return (value) => {
    const kind = isObject(value) ? value[discriminator] : undefined;
    return byKind.has(kind) ? (byKind.get(kind)?.(value) ?? value) : shapeOf(value);
  };
}

/** Hides by the first member that the value fits. */
function unionHider(options: readonly z.core.$ZodType[], discriminator?: string): Hide | undefined {
  if (discriminator !== undefined) return kindHider(options, discriminator);
  const members = options.map((option) => ({ option, hide: hiderOf(option) }));
  if (members.every(({ hide }) => hide === undefined)) return undefined;
  return (value) => {
    const fits = members.find(({ option }) => z.core.safeParse(option, value).success);
    return fits ? (fits.hide?.(value) ?? value) : shapeOf(value);
  };
}

const mapEntries = (value: Record<string, unknown>, hiderFor: (key: string) => Hide | undefined) =>
  Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const hide = hiderFor(key);
      return [key, hide ? hide(item) : item];
    }),
  );
