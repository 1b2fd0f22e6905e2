/**
 * The end of an attachment, in order: the code, the state, the lease, the seats and the report to the
 * instance. If a step takes too long the next one follows all the same; the watcher reports an end that is
 * not reported here.
 */
import type { SessionClaim } from "../../../../schemas/index.ts";
import { bucketStream, bucketSubject } from "../../../../shared/bus/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import type { Lease } from "../../../../shared/leases/index.ts";
import { announceFault, within } from "../../../../shared/runtime/index.ts";
import type { RunHooks } from "../../hosts/index.ts";
import type { Calls } from "../calls/calls.ts";
import type { PoolFeed } from "../pools/pool-feed.ts";
import type { Seats } from "../quotas/quotas.ts";
import type { SessionServices } from "../session-services.ts";
import type { CheckpointSaver } from "./checkpoint-saver.ts";
import type { PlacedState } from "./placed-state.ts";
import { abortReason, describeEnding, isPlanned, type SessionEnding } from "./session-ending.ts";
import { shutDownSession, shutDownUnmade } from "./shut-down-session.ts";

/** The parts of the attachment that exist when it ends. */
export type Live =
  | { kind: "initialising"; controller: AbortController; made: Promise<PlacedState | undefined> }
  | {
      kind: "ready";
      /** Replaced when the state moves to another host. */
      placed: PlacedState;
      calls: Calls;
      /** Set if the session is a member of a pool: brings it the pool's calls. */
      pool: PoolFeed | undefined;
    };

interface Detaching {
  readonly services: SessionServices;
  readonly claim: SessionClaim;
  readonly lease: Lease;
  readonly definition: AnySession | undefined;
  readonly seats: Seats;
  readonly saver: CheckpointSaver;
  readonly hooks: RunHooks;
}

/** Returns a clean state that outlived its lease and may be attached again (S14). */
export async function detach(
  one: Detaching,
  live: Live,
  ending: SessionEnding,
): Promise<PlacedState | undefined> {
  const { services, claim, lease } = one;
  const { sessionId, type } = claim;
  const { epoch } = lease;
  const { workerId } = services.deps.identity;
  const reason = abortReason(ending, { sessionId, epoch, workerId });
  const kept = await endState(one, live, ending, reason);
  // Seats follow the lease, never the other way (QUOTA-1). If the lease is left to expire, so are they
  // (QUOTA-2).
  if (await release(one, ending)) await Promise.all([one.seats.giveBack(), reportEnd(one, ending)]);
  else if (live.kind === "initialising" && ending.kind === "fenced" && ending.why === "expired")
    void reportVanished(one);
  const why = describeEnding(ending);
  services.deps.runtime.announce({ kind: "session.detached", ...{ sessionId, type, epoch, ...why } });
  return kept;
}

async function endState(
  { services, definition, saver, hooks }: Detaching,
  live: Live,
  ending: SessionEnding,
  reason: Error,
): Promise<PlacedState | undefined> {
  const { closeMs } = services.timing;
  const { clock } = services.deps.runtime;
  if (live.kind === "initialising") {
    live.controller.abort(reason);
    await shutDownUnmade(live.made, { hooks, closeMs, clock });
    return undefined;
  }
  const { calls, placed } = live;
  if (ending.kind === "fenced" && ending.why === "expired" && !calls.dirty) {
    calls.end(reason);
    return placed;
  }
  const planned = isPlanned(ending);
  await shutDownSession(placed, {
    ...{ calls, reason, hooks, clock },
    finishMs: planned ? services.deps.config.drainTimeoutMs : 0,
    // A hung call has already had its time.
    closeMs: ending.kind === "given_up" && ending.reason === "hung" ? 0 : closeMs,
    // A parked session continues from its saved state, on any worker.
    save: (planned || ending.kind === "parked") && definition?.checkpoint ? saver : undefined,
  });
  // A result may still be on its way by the lane or the inbox: if the report of the end overtook it, it would
  // come too late to count (S6). An instance that closed the session waits for no result.
  if (ending.kind !== "closed" && ending.kind !== "fenced") await within(closeMs, calls.reported(), clock);
  return undefined;
}

/** Resolves to true if this call removed the lease: then this worker reports the end (HOLD-3). */
async function release({ services, claim, lease }: Detaching, ending: SessionEnding): Promise<boolean> {
  if (ending.kind === "fenced") return false;
  const { leases, runtime, faultPoints } = services.deps;
  const session = { id: claim.sessionId, type: claim.type };
  faultPoints?.reach("close.before_release", session);
  try {
    const released = (await leases.release(lease)) === "released";
    faultPoints?.reach("close.after_release", session);
    return released;
  } catch (error) {
    // The lease runs out by itself, and the watcher reports the loss.
    announceFault(runtime, `release of ${lease.key}`, error);
    return false;
  }
}

/**
 * The bucket of leases was made anew while `init` ran: no expiry informs the watcher, and the instance may
 * not know of this holder, so that it would wait for it until the session's creation timeout.
 */
async function reportVanished(one: Detaching): Promise<void> {
  const { bus, names, runtime } = one.services.deps;
  const { key } = one.lease;
  const bucket = names.bucket("leases");
  try {
    if (await bus.last(bucketStream(bucket), bucketSubject(bucket, key), { leader: true })) return;
    await reportEnd(one, {
      kind: "given_up",
      reason: "expired",
      detail: "its lease was removed with the bucket of leases",
    });
  } catch (error) {
    // The session's creation timeout ends the wait of its instance.
    announceFault(runtime, `loss of ${key}`, error);
  }
}

async function reportEnd({ services, claim, lease, saver }: Detaching, ending: SessionEnding): Promise<void> {
  const { reporter, deps, timing } = services;
  const { clock } = deps.runtime;
  const giveUpAt = clock.monotonic() + timing.reportMs;
  const mayReport = () => clock.monotonic() < giveUpAt;
  const { epoch } = lease;
  switch (ending.kind) {
    case "closed":
      await saver.forget();
      return;
    case "parked":
      await reporter.session(claim, { kind: "parked", epoch }, mayReport);
      return;
    case "init_failed":
      await reporter.session(claim, { kind: "init_failed", error: ending.error }, mayReport);
      return;
    case "given_up": {
      const { reason, detail, running } = ending;
      const why = {
        reason,
        ...(detail !== undefined && { detail }),
        ...(running && services.deps.generation.allows(2) && { running: [...running] }),
      };
      await reporter.session(claim, { kind: "lost", epoch, ...why }, mayReport);
      return;
    }
    case "fenced":
      return;
  }
}
