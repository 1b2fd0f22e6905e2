/**
 * Claims a key, as one act with a known outcome.
 *
 * LEASE-3 A claim is a CAS create; its revision is the epoch (S2). All attempts of one claim carry the same
 *    claim id, so an unanswered one that landed is recognised by reading.
 * LEASE-4 The key of a session's attachment is claimed once in its life: a write over an expiry would hide
 *    the expiry from the watcher, and a late copy of a claim must not revive an attachment that has ended.
 */
import type { LeaseValue } from "../../schemas/index.ts";
import { leaseKeys } from "../bus/index.ts";
import { Fault } from "../errors/index.ts";
import { type Clock, sleep } from "../runtime/index.ts";
import { deadlineOf } from "./holding.ts";
import { type ClaimOutcome, leaseTiming } from "./lease.ts";
import type { LeaseKeyState, LeaseStore } from "./lease-store.ts";

interface ClaimRequest {
  key: string;
  claimId: string;
  body: Uint8Array;
  ttlMs: number;
  giveUpAfterMs: number;
  skewMs: number;
}

type Won = { kind: "won"; epoch: number; revision: number; beganAt: number };

/** A claimed key, with everything that a keeper needs to renew it. */
export interface ClaimedKey {
  readonly key: string;
  readonly claimId: string;
  readonly body: Uint8Array;
  readonly ttlMs: number;
  readonly won: Won;
}

type Taken = Extract<ClaimOutcome, { kind: "taken" }>;

export const leaseBody = (value: LeaseValue): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

export async function claimKey(store: LeaseStore, clock: Clock, request: ClaimRequest): Promise<Won | Taken> {
  const { key, claimId, body, ttlMs, skewMs } = request;
  const once = leaseKeys.parseSession(key) !== undefined;
  const startedAt = clock.monotonic();
  const timeoutMs = Math.min(2000, ttlMs / 2);
  let epoch: number | undefined;
  let expected = 0;
  /** Start of the earliest attempt that may be the one that was stored (LEASE-1). */
  let beganAt = startedAt;
  for (;;) {
    const outcome = await store.write({ key, claimId, body, ttlMs, expected, timeoutMs });
    const revision = outcome.kind === "stored" ? outcome.seq : undefined;
    const look = outcome.kind === "conflict" ? await store.look(key) : undefined;
    const ours = revision ?? (look?.kind === "held" && look.claimId === claimId ? look.revision : undefined);
    if (ours !== undefined) {
      epoch ??= ours;
      if (clock.monotonic() < deadlineOf(ttlMs, beganAt, skewMs))
        return { kind: "won", epoch, revision: ours, beganAt };
      // The answer came so late that the lease may have expired: grant it only if one more write succeeds in time.
      expected = ours;
      beganAt = clock.monotonic();
    } else if (look !== undefined) {
      const free = epoch === undefined ? freeAt(look, once) : undefined;
      if (free === undefined) return takenBy(look);
      if (free === expected) throw unanswered(key); // the key was purged meanwhile
      expected = free;
      beganAt = clock.monotonic();
    } else {
      await sleep(clock, leaseTiming(ttlMs).retryAfterMs);
    }
    if (clock.monotonic() - startedAt >= request.giveUpAfterMs) throw unanswered(key);
  }
}

/** The revision to create over, or undefined if the key cannot be claimed. */
function freeAt(look: LeaseKeyState, once: boolean): number | undefined {
  switch (look.kind) {
    case "none":
      return 0;
    case "expired":
    case "released":
      return once ? undefined : look.revision;
    case "held":
      return undefined;
  }
}

function takenBy(look: LeaseKeyState): Taken {
  return look.kind === "held"
    ? { kind: "taken", why: "held", holder: look.holder, revision: look.revision }
    : { kind: "taken", why: "spent", holder: undefined, revision: look.kind === "none" ? 0 : look.revision };
}

const unanswered = (key: string): Fault =>
  new Fault("transient", {
    code: "claim_unanswered",
    message: `no answer to the claim of lease ${key}; if it was stored it runs out by itself`,
  });
