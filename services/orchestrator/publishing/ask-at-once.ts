/**
 * Also shows a claim that must not wait for a quota (`whenFull: "fail"`) to one worker by a plain message:
 * while a quota is reached, claims rest unseen in their queue (CLAIM-4). If the plain message is lost, the
 * claim waits, and nothing else happens.
 */
import type { SessionClaim } from "../../../schemas/index.ts";
import { encode } from "../../../shared/bus/index.ts";
import { capable, place } from "../../../shared/sessions/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { offerSubject } from "../lane/claim-offers.ts";

export function askAtOnce(deps: EngineDeps, claim: SessionClaim): void {
  if (claim.whenFull !== "fail") return;
  const known = deps.workers.workers();
  const placed = place(known, claim);
  const capableWorkers = capable(known, claim);
  const anyCapable = capableWorkers.kind === "left" ? capableWorkers.workers[0]?.workerId : undefined;
  const workerId = placed.kind === "chosen" ? placed.workerId : anyCapable;
  if (workerId !== undefined) deps.bus.send(offerSubject(deps, workerId, claim.type), encode(claim));
}
