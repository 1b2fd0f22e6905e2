/** Generates the OpenAPI file from the routes. */
import { z } from "zod";
import { withoutCatchall } from "../../../schemas/index.ts";
import type { RouteSpec } from "./route.ts";

interface Parameter {
  name: string;
  in: "path" | "query";
  required: boolean;
  schema: unknown;
  description?: string;
}

interface OpenApiOptions {
  version: string;
  /** Schemas that get a name in the file; responses refer to them. */
  named: Readonly<Record<string, z.ZodType>>;
  problem: string;
}

export function openApi(routes: readonly RouteSpec[], options: OpenApiOptions): Record<string, unknown> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(options.named)) registry.add(schema, { id });
  const inline = new Map<z.ZodType, string>();
  for (const spec of routes) {
    for (const [schema, id] of [
      [spec.answer, `${capital(spec.id)}Answer`],
      [spec.body, `${capital(spec.id)}Body`],
    ] as const) {
      if (!schema || registry.has(schema)) continue;
      registry.add(schema, { id });
      inline.set(schema, id);
    }
  }
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    io: "input",
    override: withoutCatchall,
  });
  const components = Object.fromEntries(
    Object.entries(schemas)
      .map(([id, schema]) => [id, withoutIdentity(schema)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  const reference = (schema: z.ZodType) => ({
    $ref: `#/components/schemas/${registry.get(schema)?.id ?? inline.get(schema)}`,
  });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const spec of routes) {
    const path = openApiPath(spec.path);
    (paths[path] ??= {})[spec.method] = operation(spec, reference, options.problem);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast gateway",
      version: options.version,
      description:
        "Everything the client can do, over HTTP. Errors are `{ok: false, error: {code, message, hint}}`.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { cookie: [] }],
    paths,
    components: {
      schemas: components,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A token of GATEWAY_TOKENS." },
        cookie: { type: "apiKey", in: "cookie", name: "holdfast", description: "Set by POST /api/login." },
      },
    },
  };
}

export const openApiPath = (path: string): string => path.replace(/:([A-Za-z]+)/g, "{$1}");

function operation(spec: RouteSpec, reference: (schema: z.ZodType) => unknown, problem: string) {
  const fails = (description: string) => ({
    description,
    content: { "application/json": { schema: { $ref: `#/components/schemas/${problem}` } } },
  });
  return {
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.role === "public" ? { security: [] } : { "x-role": spec.role }),
    parameters: [...parameters(spec.params, "path"), ...parameters(spec.query, "query")],
    ...(spec.body
      ? { requestBody: { required: true, content: { "application/json": { schema: reference(spec.body) } } } }
      : {}),
    responses: {
      [spec.status ?? 200]: {
        description: "Done",
        content: { "application/json": { schema: reference(spec.answer) } },
      },
      400: fails("The input is not valid"),
      ...(spec.role === "public"
        ? {}
        : { 401: fails("No valid token"), 403: fails("The role, the origin or read-only mode forbids it") }),
      ...(spec.params ? { 404: fails("Not known") } : {}),
      429: fails("Too many requests"),
      ...(spec.offline ? {} : { 503: fails("NATS is away, or did not answer in time") }),
    },
  };
}

function parameters(schema: z.ZodType | undefined, where: Parameter["in"]): Parameter[] {
  if (!schema) return [];
  const json = z.toJSONSchema(schema, { io: "input", override: withoutCatchall });
  return Object.entries(json.properties ?? {}).map(([name, property]) => ({
    name,
    in: where,
    required: where === "path" || (json.required ?? []).includes(name),
    schema: property,
  }));
}

function withoutIdentity(schema: object): object {
  const { $schema: _, $id: __, ...rest } = schema as { $schema?: string; $id?: string };
  return rest;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
