/** Users bring any Standard Schema validator; zod is what we write in examples. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { HoldfastError } from "../errors/index.ts";

export type Schema<I = unknown, O = I> = StandardSchemaV1<I, O>;
export type SchemaIn<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S> : unknown;
export type SchemaOut<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : unknown;

/**
 * Checks a value. `code` is what the caller's user sees (`invalid_input`, `invalid_output`, …), `what` names whose
 * value it is; the message carries the path of the first issues.
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
