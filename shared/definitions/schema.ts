/** Users may bring any Standard Schema validator; the examples use zod. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { HoldfastError } from "../errors/index.ts";

/** Any schema of the Standard Schema kind: zod, valibot, arktype and others. */
export type Schema<I = unknown, O = I> = StandardSchemaV1<I, O>;
/** The input type of a schema. */
export type SchemaIn<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S> : unknown;
/** The output type of a schema. */
export type SchemaOut<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : unknown;

/**
 * Checks a value. `code` is the error code that the user sees (`invalid_input`, `invalid_output`, …), `what`
 * names the value; the message carries the paths of the first issues.
 */
export function validate<S extends Schema>(
  schema: S | undefined,
  value: unknown,
  code: string,
  what: string,
): SchemaOut<S> {
  if (!schema) return value as SchemaOut<S>;
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) {
    throw new HoldfastError({ code, message: `${what}: asynchronous schemas are not supported here` });
  }
  if (!result.issues) return result.value as SchemaOut<S>;
  const issues = result.issues.slice(0, 5).map((issue) => ({ path: pathOf(issue), message: issue.message }));
  throw new HoldfastError({
    code,
    message: `${what}: ${issues.map((issue) => `${issue.path || "(value)"}: ${issue.message}`).join("; ")}`,
    details: { issues },
  });
}

const pathOf = (issue: StandardSchemaV1.Issue): string =>
  (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
