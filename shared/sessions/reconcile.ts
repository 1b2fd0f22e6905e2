/**
 * A second check behind the watcher (S5): finds sessions that are held according to the register and not
 * according to their lease. Pure. A repeated report does no harm, so an expiry is believed at once. A
 * released or missing lease is believed only if it is still so later, because the worker that released it is
 * about to report why.
 */

import type { SessionRecord } from "../../schemas/index.ts";
import { sessionPhases } from "../../schemas/index.ts";
import type { LeaseKeyState } from "../leases/index.ts";

export interface Suspect {
  attachment: number;
  /** Monotonic clock. */
  since: number;
}

export type Verdict =
  | { kind: "fine" }
  | { kind: "suspect"; suspect: Suspect }
  | { kind: "lost"; why: string };

/** True if the register says that a worker holds the session, or may hold it without having reported so. */
export const mayBeHeld = ({ phase }: SessionRecord): boolean => sessionPhases[phase].mayBeHeld;

/** `isAsked`: the claim of a session that no worker has claimed yet waits in its queue. */
export function judge(
  record: SessionRecord,
  { isAsked, lease }: { isAsked: boolean; lease: LeaseKeyState },
  before: Suspect | undefined,
  now: number,
  confirmAfterMs: number,
): Verdict {
  if (lease.kind === "held") return { kind: "fine" };
  if (lease.kind === "expired") return { kind: "lost", why: "its lease expired" };
  // No worker has claimed it yet; its instance watches the deadline. A key that was given back cannot be
  // claimed again, and a claim that is in no queue is not offered again.
  if (lease.kind === "none" && isAsked) return { kind: "fine" };
  const known = before?.attachment === record.attachment ? before : undefined;
  const suspect = known ?? { attachment: record.attachment, since: now };
  if (now - suspect.since < confirmAfterMs) return { kind: "suspect", suspect };
  return { kind: "lost", why: lease.kind === "released" ? "its lease was given back" : "it has no lease" };
}
