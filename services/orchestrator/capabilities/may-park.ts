/**
 * Decides whether a message that only a newer process can read makes its instance wait (E1). Workers may
 * publish reports to any instance: a report makes its instance wait only if it carries the capability for
 * what it reports (C1). Without it, only the message waits.
 */
import { z } from "zod";
import { poolSignal } from "../../../schemas/index.ts";
import { decode, type Subjects } from "../../../shared/bus/index.ts";
import type { Capabilities } from "../../../shared/capabilities/index.ts";

/** The fields of reports that no generation changes. */
const ofTask = z.object({
  execution: z.int(),
  of: z.int(),
  attempt: z.int(),
  epoch: z.number().optional(),
  capability: z.string().optional(),
});
const ofSession = z.object({
  sessionId: z.string(),
  attachment: z.int(),
  capability: z.string().optional(),
});
const unknownTask: z.infer<typeof ofTask> = { execution: 0, of: 0, attempt: 0 };
const unknownSession: z.infer<typeof ofSession> = { sessionId: "", attachment: 0 };

export function mayPark(
  capabilities: Capabilities,
  names: Subjects,
  { subject, body }: { subject: string; body: Uint8Array },
): boolean {
  const { instanceId = "", verb } = names.parseInbox(subject) ?? {};
  switch (verb?.kind) {
    case "activity": {
      const task = decode(ofTask, body);
      const { capability, ...address } = task.kind === "ok" ? task.value : unknownTask;
      return capabilities.doubtTask({ ...address, instanceId }, capability) === undefined;
    }
    case "session": {
      const session = decode(ofSession, body);
      const { capability, ...address } = session.kind === "ok" ? session.value : unknownSession;
      return capabilities.doubtSession({ ...address, instanceId }, capability) === undefined;
    }
    case "signal":
      return verb.name !== poolSignal;
    default:
      return true; // clients and the engine alone may publish it
  }
}
