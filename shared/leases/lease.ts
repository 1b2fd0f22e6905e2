import type { LeaseValue } from "../../schemas/index.ts";
import type { ClockSkew } from "../bus/index.ts";
import { Fault } from "../errors/index.ts";
import type { Service } from "../runtime/index.ts";

/** The right to act under `key`, for as long as it is renewed. */
export interface Lease {
  readonly key: string;
  /** Revision of the winning claim: the fencing token (S2). */
  readonly epoch: number;
  readonly ttlMs: number;
}

export type LossWhy =
  /** The server expired the lease, or its holder could not renew it in time and fenced itself (S7). */
  | "expired"
  /** Another holder has the key now. */
  | "taken"
  /** An operator or a sweep ended the lease. */
  | "released"
  /** The process that holds the lease no longer proves that it is alive (S8). */
  | "stalled";

export type ClaimOutcome =
  | { kind: "granted"; lease: Lease }
  | {
      kind: "taken";
      /** `held`: another holder has the key now. `spent`: the key can be claimed only once, and was. */
      why: "held" | "spent";
      holder: string | undefined;
      revision: number;
    };

export type LostListener = (lease: Lease, why: LossWhy) => void;

/** Implemented by both keepers: the plain one on the caller's thread, the threaded one on its own (S8). */
export interface Leases extends Service {
  /** `ttlMs` defaults to the keeper's own. Throws a transient Fault if the server did not answer in time. */
  claim(key: string, value: LeaseValue, ttlMs?: number): Promise<ClaimOutcome>;
  /** From this call on the caller must not act under the lease. `gone`: the lease had ended already. */
  release(lease: Lease): Promise<"released" | "gone">;
  /** Ask before every act: exact even right after the process was paused (F10). */
  isHeld(lease: Lease): boolean;
  /** Called once per lease that ends other than by `release`. */
  onLost(listener: LostListener): () => void;
}

/** `what` names the option in the error. */
export function requireTtl(ttlMs: number, what = "lease TTL"): number {
  if (Number.isInteger(ttlMs) && ttlMs >= 1000 && ttlMs % 1000 === 0) return ttlMs;
  throw new Fault("config", {
    code: "invalid_lease_ttl",
    message: `${what} of ${ttlMs} ms is not possible: must be whole seconds, at least 1 s`,
    hint: "The server counts the life of a message in whole seconds.",
  });
}

export interface LeaseTiming {
  renewEveryMs: number;
  /** How long one renewal may stay unanswered. */
  publishTimeoutMs: number;
  retryAfterMs: number;
  /** The lease ends for its holder this long before the server may end it. */
  marginMs: number;
}

/**
 * A failed renewal can be tried at least twice more before the lease fences itself, even with the shortest
 * TTL. `skewMs`: how far the clocks of the servers may be apart; each server may become leader of the bucket.
 */
export const leaseTiming = (ttlMs: number, skewMs = 0): LeaseTiming => ({
  renewEveryMs: ttlMs / 3,
  publishTimeoutMs: Math.min(500, ttlMs / 6),
  retryAfterMs: Math.min(200, ttlMs / 15),
  marginMs: Math.min(1000, ttlMs / 10) + skewMs,
});

/** A larger skew than a third of the TTL would not leave enough time to renew. */
export function requireLittleSkew(ttlMs: number, { leastMs, mostMs }: ClockSkew): number {
  const bound = ttlMs / 3;
  if (leastMs <= bound) return Math.min(mostMs, bound);
  throw new Fault("config", {
    code: "server_clocks_apart",
    message: `the clocks of the NATS servers are at least ${Math.round(leastMs)} ms apart, more than leases of ${ttlMs} ms allow (${Math.round(bound)} ms)`,
    hint: "Run NTP on every NATS server: a lease would end early when another server takes the lead.",
  });
}
