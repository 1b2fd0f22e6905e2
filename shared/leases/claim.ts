/**
 * Winning a key, as one act with a known end.
 *
 * L3 A claim is a CAS create; its revision is the epoch (S2). All attempts of one claim carry the same claim id, so an
 *    unanswered one that landed is recognised by reading.
 * L4 The key of a session's attachment is claimed once in its life: what is written over an expiry would hide it from
 *    the watcher, and a late copy of a claim must not revive an attachment that is over.
 */
import type { LeaseValue } from "../../schemas/index.ts";
import { leaseKeys } from "../bus/subjects.ts";
import { Fault } from "../errors/index.ts";
import { type Clock, sleep } from "../runtime/index.ts";
import type { ClaimOutcome } from "./lease.ts";
import { leaseTiming } from "./lease.ts";
import type { LeaseStore, Look } from "./lease-store.ts";

export interface ClaimRequest {
  key: string;
  claimId: string;
  body: Uint8Array;
  ttlMs: number;
  giveUpAfterMs: number;
}

export type Won = { kind: "won"; epoch: number; beganAt: number };
type Taken = Extract<ClaimOutcome, { kind: "taken" }>;

export const leaseBody = (value: LeaseValue): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

export async function claimKey(store: LeaseStore, clock: Clock, request: ClaimRequest): Promise<Won | Taken> {
  const { key, claimId, ttlMs } = request;
  const once = leaseKeys.parseSession(key) !== undefined;
  const beganAt = clock.monotonic();
  let expected = 0;
  for (;;) {
    const outcome = await store.write({
      key,
      claimId,
      body: request.body,
      ttlMs,
      expected,
      timeoutMs: Math.min(2000, ttlMs / 2),
    });
    // Attempts before this one may be the one that landed: the beginning of the first is the safe one to count from.
    if (outcome.kind === "stored") return { kind: "won", epoch: outcome.seq, beganAt };
    if (outcome.kind === "conflict") {
      const look = await store.look(key);
      if (look.kind === "held" && look.claimId === claimId)
        return { kind: "won", epoch: look.revision, beganAt };
      const next = freeAt(look, once);
      if (next === undefined) return takenBy(look);
      if (next === expected) throw unanswered(key); // the server contradicts itself: a replica behind, a purge meanwhile
      expected = next;
      continue;
    }
    if (clock.monotonic() - beganAt >= request.giveUpAfterMs) throw unanswered(key);
    await sleep(clock, leaseTiming(ttlMs).retryAfterMs);
  }
}

/** The revision to create over, or undefined where the key is not to be had. */
function freeAt(look: Look, once: boolean): number | undefined {
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

function takenBy(look: Look): Taken {
  return look.kind === "held"
    ? { kind: "taken", why: "held", holder: look.holder, revision: look.revision }
    : { kind: "taken", why: "spent", holder: undefined, revision: look.kind === "none" ? 0 : look.revision };
}

const unanswered = (key: string): Fault =>
  new Fault("transient", {
    code: "claim_unanswered",
    message: `no answer to the claim of lease ${key}; if it was stored it runs out by itself`,
  });
