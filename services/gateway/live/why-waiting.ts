/** Why nobody holds a session yet, in the words of placement (S12). */
import type { WorkerInfo } from "../../../schemas/index.ts";
import { placeWithinQuotas } from "../../../shared/sessions/quota.ts";
import type { SessionRow } from "./rows.ts";

export type Waiting =
  | { kind: "placeable"; workerId: string; message: string }
  | { kind: "stuck"; why: string; message: string };

export function whyWaiting(session: SessionRow, workers: readonly WorkerInfo[]): Waiting {
  const { sessionId, type, requires, resourceId } = session;
  const placement = placeWithinQuotas(workers, {
    sessionId,
    type,
    requires,
    affinityKey: "",
    ...(resourceId === undefined ? {} : { resourceId }),
  });
  switch (placement.kind) {
    case "chosen":
      return {
        kind: "placeable",
        workerId: placement.workerId,
        message: `worker ${placement.workerId} can take it (${placement.why})`,
      };
    case "none":
      return { kind: "stuck", why: placement.why, message: placement.message };
  }
}
