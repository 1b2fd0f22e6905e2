/**
 * The second net under the watcher (S5): sessions that the register believes held, and whose lease says otherwise.
 * Pure. Told twice does no harm, so an expiry is believed at once; a lease given back, or none at all, is believed
 * only when it is still so later, because whoever gave it back is about to say why.
 */
import type { SessionRecord } from "../../schemas/index.ts";
import type { Look } from "../leases/index.ts";

export interface Suspect {
  attachment: number;
  /** Monotonic. */
  since: number;
}

export type Verdict =
  | { kind: "fine" }
  | { kind: "suspect"; suspect: Suspect }
  | { kind: "lost"; why: string };

/** Whether the register says that somebody holds it, or may hold it without having said so. */
export const mayBeHeld = (record: SessionRecord): boolean => {
  switch (record.phase) {
    case "opening":
    case "claimed":
    case "active":
    case "rebuilding":
      return true;
    case "parked":
    case "lost":
    case "failed":
    case "closed":
      return false;
  }
};

export function judge(
  record: SessionRecord,
  lease: Look,
  before: Suspect | undefined,
  now: number,
  confirmAfterMs: number,
): Verdict {
  if (lease.kind === "held") return { kind: "fine" };
  if (lease.kind === "expired") return { kind: "lost", why: "its lease expired" };
  // Nobody has claimed it yet; its deadline is its instance's business. A key given back cannot be claimed again.
  if (record.phase === "opening" && lease.kind === "none") return { kind: "fine" };
  const known = before?.attachment === record.attachment ? before : undefined;
  const suspect = known ?? { attachment: record.attachment, since: now };
  if (now - suspect.since < confirmAfterMs) return { kind: "suspect", suspect };
  return { kind: "lost", why: lease.kind === "released" ? "its lease was given back" : "it has no lease" };
}
