import { z } from "zod";
import { checkFitBy } from "./fits.ts";
import { Name } from "./ids.ts";
import { wireObject } from "./wire-object.ts";

/** A value too big for a message, kept in the object store. The digest identifies its bytes. */
export const BlobRef = wireObject({
  key: z.string().min(1),
  bytes: z.int().nonnegative(),
  sha256: z.string().length(64),
});
export type BlobRef = z.infer<typeof BlobRef>;

/**
 * A user value on the wire: JSON in place, or a reference to a blob with that JSON. `undefined` has no JSON:
 * it is `{}` on the wire and `{ json: undefined }` in memory. A value with other keys and neither of these
 * two comes from a newer version and is refused (E1).
 */
export const Payload = z.union([
  // The common case first: a union tries its members in order.
  wireObject({ json: z.unknown().optional() })
    .refine((value) => !("blob" in value), "is a mixture of json and blob, or its blob is no reference")
    .refine(
      (value) => "json" in value || Object.keys(value).length === 0,
      "holds its value in an unknown way",
    )
    .transform(({ json, ...unknown }) => ({ ...unknown, json })),
  wireObject({ blob: BlobRef }).refine((value) => !("json" in value), "is a mixture of json and blob"),
]);
export type Payload = z.infer<typeof Payload>;
checkFitBy(Payload, (value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value) || "blob" in value) return "unsure";
  if ("json" in value) return Object.hasOwn(value, "__proto__") ? "unsure" : "same";
  if (Object.keys(value).length > 0) return "unsure";
  Object.assign(value, { json: undefined });
  return "same";
});

/** An error as it is sent and recorded. */
export interface Failure {
  code: string;
  message: string;
  retryable: boolean;
  details?: unknown;
  stack?: string;
  cause?: Failure;
}

/** An error as data. `code` is stable and is what programs match on. */
export const Failure: z.ZodType<Failure> = wireObject({
  code: z.string().min(1).max(128),
  message: z.string(),
  retryable: z.boolean(),
  details: z.unknown().optional(),
  stack: z.string().optional(),
  get cause() {
    return Failure.optional();
  },
});

/** The parent instance, which waits for this instance's end. */
export const Parent = wireObject({
  instanceId: Name,
  execution: z.int().positive(),
  of: z.int().positive(),
});
export type Parent = z.infer<typeof Parent>;

/**
 * @generation 2 The instance that receives a signal when this instance ends. Unlike a parent's end, its end
 * does not affect this instance.
 */
export const Follower = wireObject({ instanceId: Name, signal: Name });
export type Follower = z.infer<typeof Follower>;

/** The version of a message's shape. */
export const SchemaVersion = z.literal(1);
