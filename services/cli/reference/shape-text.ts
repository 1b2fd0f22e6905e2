/** A schema as text for people: `{ id: string, n?: number, kind: "a" | "b" }`. Pure. */
import { z } from "zod";

type Json = z.core.JSONSchema.JSONSchema;

export type Names = ReadonlyMap<z.core.$ZodType, string>;

/** `names` maps schemas described elsewhere to their names; `own` is the schema described here. */
export function shapeText(schema: z.ZodType, names: Names = new Map(), own?: z.core.$ZodType): string {
  const json = z.toJSONSchema(schema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      const name = zodSchema === own ? undefined : names.get(zodSchema);
      if (name === undefined) return;
      for (const key of Object.keys(jsonSchema)) delete (jsonSchema as Record<string, unknown>)[key];
      jsonSchema.title = name;
    },
  }) as Json;
  return text(json, json);
}

function text(schema: Json | boolean | undefined, root: Json): string {
  if (schema === undefined || typeof schema === "boolean") return "any";
  if (schema.title !== undefined) return schema.title;
  if (schema.$ref !== undefined) return reference(schema.$ref, root);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return [...new Set(union.map((one) => text(one, root)))].join(" | ");
  if (schema.allOf) return schema.allOf.map((one) => text(one, root)).join(" & ");
  const { type } = schema;
  if (Array.isArray(type)) return type.map((one) => text({ ...schema, type: one }, root)).join(" | ");
  switch (type) {
    case "array":
      return list(text(schema.items as Json | undefined, root));
    case "object":
      return object(schema, root);
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return type;
    default:
      return "any";
  }
}

const list = (item: string): string =>
  /[|&]/.test(item) && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;

function object(schema: Json, root: Json): string {
  const { properties = {}, required = [], additionalProperties } = schema;
  const fields = Object.entries(properties).map(
    ([name, one]) => `${name}${required.includes(name) ? "" : "?"}: ${text(one as Json, root)}`,
  );
  if (fields.length > 0) return `{ ${fields.join(", ")} }`;
  if (additionalProperties === undefined || additionalProperties === false) return "{}";
  return `{ [name]: ${text(additionalProperties as Json, root)} }`;
}

/** A schema that refers to itself is shown by its name. */
function reference(ref: string, root: Json): string {
  const name = ref.split("/").at(-1) ?? "";
  const found = root.$defs?.[name];
  return found?.title ?? (/^__schema/.test(name) ? "…" : name);
}
