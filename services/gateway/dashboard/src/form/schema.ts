/** The part of JSON Schema from which a form can be made. Other schemas get a field for JSON. Pure. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  anyOf?: Schema[];
  additionalProperties?: unknown;
}

type FieldKind =
  | { kind: "text"; long: boolean }
  | { kind: "number"; whole: boolean }
  | { kind: "flag" }
  | { kind: "choice"; options: unknown[] }
  | { kind: "object"; properties: [string, Schema, boolean][] }
  | { kind: "list"; of: Schema }
  | { kind: "json" };

export const asSchema = (value: unknown): Schema | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : undefined;

export function fieldKind(schema: Schema): FieldKind {
  if (schema.enum) return { kind: "choice", options: schema.enum };
  if (schema.const !== undefined) return { kind: "choice", options: [schema.const] };
  switch (schema.type) {
    case "string":
      return { kind: "text", long: (schema.maxLength ?? 0) > 200 };
    case "number":
    case "integer":
      return { kind: "number", whole: schema.type === "integer" };
    case "boolean":
      return { kind: "flag" };
    case "object":
      return schema.properties
        ? {
            kind: "object",
            properties: Object.entries(schema.properties).map(([name, inner]) => [
              name,
              inner,
              schema.required?.includes(name) ?? false,
            ]),
          }
        : { kind: "json" };
    case "array":
      return schema.items && fieldKind(schema.items).kind !== "json"
        ? { kind: "list", of: schema.items }
        : { kind: "json" };
    default:
      return { kind: "json" };
  }
}

/** A value to try the orchestration with: the form's first value, with a word for each required text. */
export function exampleValue(schema: Schema | undefined): unknown {
  if (!schema) return null;
  const field = fieldKind(schema);
  if (schema.default !== undefined) return schema.default;
  if (field.kind === "text") return "you";
  if (field.kind !== "object") return firstValue(schema);
  return Object.fromEntries(
    field.properties.filter(([, , required]) => required).map(([name, inner]) => [name, exampleValue(inner)]),
  );
}

/** The form's first value: defaults, and the smallest value of each type for required fields. */
export function firstValue(schema: Schema | undefined): unknown {
  if (!schema) return null;
  if (schema.default !== undefined) return schema.default;
  const field = fieldKind(schema);
  switch (field.kind) {
    case "text":
      return "";
    case "number":
      return schema.minimum ?? 0;
    case "flag":
      return false;
    case "choice":
      return field.options[0];
    case "object":
      return Object.fromEntries(
        field.properties
          .filter(([, inner, required]) => required || inner.default !== undefined)
          .map(([name, inner]) => [name, firstValue(inner)]),
      );
    case "list":
      return [];
    case "json":
      return schema.type === "object" ? {} : schema.type === "array" ? [] : null;
  }
}
