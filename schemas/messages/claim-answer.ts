import { z } from "zod";
import { wireObject } from "../wire-object.ts";
import { SessionReport } from "./session-messages.ts";

/** The answer of a worker to which a claim was offered on `offers.<workerId>.<type>`. */
export const ClaimAnswer = wireObject({
  /** `taken`: the claim is settled, by this worker or another. */
  verdict: z.enum(["taken", "refused"]),
  /** How many sessions the worker holds now. */
  used: z.int().nonnegative(),
  /** Set if the state is ready, and only for an orchestrator that named itself (`Holdfast-Owner`). @generation 2 */
  report: SessionReport.optional(),
});
export type ClaimAnswer = z.infer<typeof ClaimAnswer>;

/** The key under which an orchestrator confirms the report of a `ClaimAnswer`. */
export const sessionRecordingKey = ({
  sessionId,
  attachment,
}: Pick<SessionReport, "sessionId" | "attachment">): string => `session.${sessionId}.${attachment}`;
