/**
 * Reports a claim only if `init` takes a moment; otherwise the report that the state is ready contains it
 * too.
 */
import type { Attachment, SessionClaim } from "../../../../schemas/index.ts";
import type { SessionServices } from "../session-services.ts";

/** How long `init` may take before the instance is informed which worker runs it. */
const claimedAfterMs = 10;

/** The returned function stops a report that is not due yet, and resolves when one that was due is sent. */
export function reportClaimLater(
  { reporter, deps }: SessionServices,
  claim: SessionClaim,
  on: Attachment,
  mayReport: () => boolean,
): () => Promise<unknown> {
  let sending: Promise<unknown> = Promise.resolve();
  const soon = deps.runtime.clock.after(claimedAfterMs, () => {
    sending = reporter.session(claim, { kind: "claimed", on }, mayReport);
  });
  return () => {
    soon.cancel();
    return sending;
  };
}
