import { z } from "zod";
import { Name } from "./ids.ts";

/** A value too big for a message, kept in the object store. The digest makes the key a fact, not a promise. */
export const BlobRef = z.strictObject({
  key: z.string().min(1),
  bytes: z.int().nonnegative(),
  sha256: z.string().length(64),
});
export type BlobRef = z.infer<typeof BlobRef>;

/**
 * A user value on the wire: JSON in place, or a reference to a blob holding that JSON. `undefined` has no JSON: it is
 * `{}` on the wire and `{ json: undefined }` in memory.
 */
export const Payload = z.union([
  z.strictObject({ blob: BlobRef }),
  z.strictObject({ json: z.unknown().optional() }).transform(({ json }) => ({ json })),
]);
export type Payload = z.infer<typeof Payload>;

export interface Failure {
  code: string;
  message: string;
  retryable: boolean;
  details?: unknown;
  stack?: string;
  cause?: Failure;
}

/** An error as data. `code` is stable and is what programs match on. */
export const Failure: z.ZodType<Failure> = z.strictObject({
  code: z.string().min(1).max(128),
  message: z.string(),
  retryable: z.boolean(),
  details: z.unknown().optional(),
  stack: z.string().optional(),
  get cause() {
    return Failure.optional();
  },
});

/** Who waits for this instance's end. */
export const Parent = z.strictObject({
  instanceId: Name,
  execution: z.int().positive(),
  of: z.int().positive(),
});
export type Parent = z.infer<typeof Parent>;

export const SchemaVersion = z.literal(1);
