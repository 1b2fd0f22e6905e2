/**
 * S14: an outage of the bus is not the death of every session. After an outage, expiries are held back for
 * one TTL, in which holders that kept their state may attach again. Holding back is always safe: it only
 * delays.
 */
import { type Bucket, type Bus, encode } from "../../shared/bus/index.ts";
import type { Runtime } from "../../shared/runtime/index.ts";

const serverKey = "watcher.server";
/** How long after its start a server may still be ending what was due before. */
const startMs = 10_000;

type ConnectedServer = Pick<Bus, "serverId" | "serverName" | "clustered">;

export class Grace {
  readonly #runtime: Runtime;
  readonly #defaultTtlMs: number;
  readonly #connectedAt: number;
  #outage: { endedAt: number; awayMs: number } | undefined;

  /** Construct this once the connection is up: from then on it sees outages. */
  constructor(runtime: Runtime, defaultTtlMs: number) {
    this.#runtime = runtime;
    this.#connectedAt = runtime.clock.monotonic();
    this.#defaultTtlMs = defaultTtlMs;
  }

  /** How much longer the expiry of a session with this TTL must wait. */
  leftMs(ttlMs = this.#defaultTtlMs): number {
    if (this.#outage === undefined) return 0;
    const { endedAt, awayMs } = this.#outage;
    // Leases are renewed every TTL/3 and retried at once, so no lease is lost to a shorter outage.
    if (awayMs < ttlMs / 3) return 0;
    return Math.max(0, endedAt + ttlMs - this.#runtime.clock.monotonic());
  }

  /**
   * True if the server wrote this just after it started, or before: then it may have ended entries that had been replaced
   * long before (WATCHER-8).
   */
  isOfStart(at: number): boolean {
    if (this.#outage === undefined) return false;
    const { clock } = this.#runtime;
    const agoMs = clock.monotonic() - this.#outage.endedAt;
    return at <= clock.now() - agoMs + startMs;
  }

  outageOver(awayMs: number, why: string, over = this.#runtime.clock.monotonic()): void {
    const { announce } = this.#runtime;
    // A short outage after a long one does not end the grace period of the long one.
    const longest = this.leftMs() > 0 ? Math.max(awayMs, this.#outage?.awayMs ?? 0) : awayMs;
    this.#outage = { endedAt: Math.max(over, this.#outage?.endedAt ?? over), awayMs: longest };
    const ms = Math.round(this.leftMs());
    if (ms > 0) announce({ kind: "watcher.grace", ms, why });
  }

  /** Notices outages while this watcher is connected. */
  follow(bus: Bus): () => void {
    return bus.onState((state) => {
      if (state.kind === "reconnected") this.outageOver(state.awayMs, "the connection was away");
    });
  }

  /**
   * Detects an outage before this watcher connected: if the server is not the one last seen, it was restarted
   * meanwhile, at the latest when this watcher connected. In a cluster each server is compared with itself: a
   * connection to another server is no outage.
   */
  async compareServer(bus: ConnectedServer, settings: Bucket): Promise<void> {
    const now = bus.serverId();
    const key = bus.clustered()
      ? `${serverKey}.${Buffer.from(bus.serverName()).toString("base64url")}`
      : serverKey;
    const before = await settings.get(key, { leader: true });
    const known = before === undefined ? undefined : new TextDecoder().decode(before.value);
    if (known === JSON.stringify(now)) return;
    if (known !== undefined)
      this.outageOver(Number.POSITIVE_INFINITY, "the server was restarted", this.#connectedAt);
    await settings.put(key, encode(now));
  }
}
