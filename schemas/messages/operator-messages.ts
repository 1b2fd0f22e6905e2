/** Requests of operators, and dead letters. */
import { z } from "zod";
import { SchemaVersion } from "../payload.ts";
import { wireObject } from "../wire-object.ts";

/** Sent to one worker on its control subject; the answer is `{"ok":true}`. */
export const WorkerControl = z.discriminatedUnion("kind", [wireObject({ kind: z.literal("drain") })]);
export type WorkerControl = z.infer<typeof WorkerControl>;

/** An operator's request to a worker or a session, with the reason. */
export const ControlRequest = wireObject({ reason: z.string().max(4096).optional() });
export type ControlRequest = z.infer<typeof ControlRequest>;

/** A message that was refused, on `dead.<what>.<id>`. */
export const DeadLetter = wireObject({
  v: SchemaVersion,
  what: z.string(),
  id: z.string(),
  subject: z.string(),
  reason: wireObject({ code: z.string(), message: z.string() }),
  at: z.number(),
  headers: z.record(z.string(), z.string()),
  /** The original body, base64: it may be anything. */
  body: z.string(),
});
export type DeadLetter = z.infer<typeof DeadLetter>;
