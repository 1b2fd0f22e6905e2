/** Rows of lists and live updates: the read models without payloads, joined with leases and workers. */
import { z } from "zod";
import { InstanceSummary, isEngineOrchestration, SessionRecord, WorkerInfo } from "../../../schemas/index.ts";
import { usersText } from "../security/index.ts";

export const InstanceRow = InstanceSummary.pick({
  instanceId: true,
  name: true,
  status: true,
  execution: true,
  events: true,
  startedAt: true,
  endedAt: true,
  updatedAt: true,
  parent: true,
  sessions: true,
}).extend({
  error: z.strictObject({ code: z.string(), message: usersText(z.string()) }).optional(),
  /**
   * True for instances with which the engine keeps schedules, pools, keyed sessions and limits; lists show
   * them apart.
   */
  engine: z.literal(true).optional(),
});
export type InstanceRow = z.infer<typeof InstanceRow>;

const longestMessage = 300;

export function instanceRow(summary: InstanceSummary): InstanceRow {
  const { v: _, input: _i, output: _o, customStatus: _c, error, ...known } = summary;
  const row: InstanceRow = isEngineOrchestration(known.name) ? { ...known, engine: true } : known;
  if (!error) return row;
  return { ...row, error: { code: error.code, message: error.message.slice(0, longestMessage) } };
}

export const LeaseView = z.strictObject({
  holder: z.string(),
  /** When the lease was granted or last renewed, by the server's clock. */
  renewedAt: z.number(),
  ttlMs: z.number(),
});
export type LeaseView = z.infer<typeof LeaseView>;

/** Without the capability that lets its holder report the loss of the session. */
export const SessionRow = SessionRecord.omit({ v: true, lossCapability: true }).extend({
  /** Absent while no worker holds the session. */
  lease: LeaseView.optional(),
  /** The figures that its holder last reported. */
  work: z
    .strictObject({
      calls: z.int(),
      queued: z.int(),
      running: z.int(),
      since: z.number(),
      errors: z.int().optional(),
      usedAt: z.number().optional(),
      modelLoads: z.int().optional(),
      hostBytes: z.number().optional(),
      snapshot: z.unknown().optional(),
    })
    .optional(),
});
export type SessionRow = z.infer<typeof SessionRow>;

export const WorkerRow = WorkerInfo.omit({ v: true });
export type WorkerRow = z.infer<typeof WorkerRow>;
