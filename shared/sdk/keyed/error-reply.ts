import { z } from "zod";

/** The reply of an endpoint that refuses a request. */
export const ErrorReply = z.object({
  ok: z.literal(false),
  error: z.object({ code: z.string(), message: z.string(), details: z.unknown().optional() }),
});
