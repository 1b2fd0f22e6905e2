import { z } from "zod";
import { SchemaVersion } from "./payload.ts";
import { wireObject } from "./wire-object.ts";

/** How many times fell into the bucket around 2^(at/4) milliseconds. */
export const PulseTimes = wireObject({ at: z.int(), n: z.int().positive() });
export type PulseTimes = z.infer<typeof PulseTimes>;

/** Plain message on `pulse`: how long things took in one process since its last pulse. A hint, it may be lost. */
export const Pulse = wireObject({
  v: SchemaVersion,
  service: z.string(),
  id: z.string(),
  times: wireObject({
    /** An activity's task from being scheduled to being begun. */
    scheduleToStart: z.array(PulseTimes).optional(),
    /** One turn, from its messages to its commit. */
    step: z.array(PulseTimes).optional(),
    /** A call on a session. */
    call: z.array(PulseTimes).optional(),
  }),
  /** Sessions taken since the last pulse, by how their state came about. */
  starts: z
    .array(
      wireObject({
        type: z.string(),
        start: z.enum(["cold", "warm", "restored"]),
        n: z.int().positive(),
      }),
    )
    .optional(),
});
export type Pulse = z.infer<typeof Pulse>;

/** Stream `AUDIT`, subject `audit.<action>`: a user of the gateway did this. */
export const AuditEntry = wireObject({
  v: SchemaVersion,
  at: z.number(),
  /** The token's name; `local` where the gateway asks for none. */
  who: z.string(),
  role: z.string(),
  from: z.string(),
  action: z.string(),
  target: z.string(),
  /** Small arguments worth keeping; never payloads. */
  with: z.record(z.string(), z.string()).optional(),
  /** Written before the act as `asked`; a second entry only if it then failed. */
  outcome: z.enum(["asked", "failed"]),
  message: z.string().optional(),
});
export type AuditEntry = z.infer<typeof AuditEntry>;
