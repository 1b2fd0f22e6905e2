/**
 * The users of a pool, and the size that they asked for together.
 *
 * POOL-3 A size set by people holds before the size that the application declares, and that before what users
 *    ask for.
 * POOL-1 A use joins once and leaves once, in whatever order both messages arrive: a user that has left does
 *    not join again.
 */
import type { PoolOrders, PoolSignal } from "../../../schemas/index.ts";

const defaultLingerMs = 60_000;
/** How many former users are remembered; a late join is late by seconds at most. */
const leftRemembered = 200;

interface PoolSize {
  min: number;
  max: number;
  lingerMs: number;
}

export class PoolUsers {
  /** Users in order of arrival. */
  readonly #users: Set<string>;
  readonly #left: Set<string>;
  #size: PoolSize;
  #unusedSince: number;
  #orders: PoolOrders;

  constructor(
    known: { users: readonly string[]; left: readonly string[]; orders?: PoolOrders | undefined },
    size: { min: number; max: number; lingerMs?: number | undefined },
    now: number,
  ) {
    this.#users = new Set(known.users);
    this.#left = new Set(known.left);
    this.#size = { ...size, lingerMs: size.lingerMs ?? defaultLingerMs };
    this.#unusedSince = now;
    this.#orders = { ...known.orders };
  }

  /** POOL-3 */
  get size(): PoolSize {
    const { declared, resized } = this.#orders;
    return { ...this.#size, ...declared, ...resized, lingerMs: declared?.lingerMs ?? this.#size.lingerMs };
  }

  get paused(): boolean {
    return this.#orders.paused ?? false;
  }

  /** The orders to carry over to the next execution, and to show. */
  get orders(): PoolOrders {
    return this.#orders;
  }

  get count(): number {
    return this.#users.size;
  }

  /** True if users or the application want members. */
  get wanted(): boolean {
    return !this.paused && (this.#users.size > 0 || this.#orders.declared !== undefined);
  }

  /** How many members are kept warm: at least one while the pool has a user. */
  get minimum(): number {
    return this.#users.size > 0 ? Math.max(1, this.size.min) : this.size.min;
  }

  order(signal: Extract<PoolSignal, { kind: "declare" | "resize" | "pause" | "resume" | "forget" }>): void {
    switch (signal.kind) {
      case "declare": {
        const { kind: _, ...declared } = signal;
        // Each orchestrator sends the declaration when it starts: only a changed one counts.
        if (JSON.stringify(declared) === JSON.stringify(this.#orders.declared)) return;
        this.#orders = { ...this.#orders, declared, resized: undefined };
        return;
      }
      case "resize":
        this.#orders = {
          ...this.#orders,
          resized: { min: Math.min(signal.min, signal.max), max: signal.max },
        };
        return;
      case "pause":
        this.#orders = { ...this.#orders, paused: true };
        return;
      case "resume":
        this.#orders = { ...this.#orders, paused: undefined };
        return;
      case "forget":
        this.#orders = {};
    }
  }

  has(user: string): boolean {
    return this.#users.has(user);
  }

  /** The size that users asked for, without the orders of people and of the application. */
  get asked(): PoolSize {
    return this.#size;
  }

  /** The users to carry over to the next execution. */
  get known(): { users: string[]; left: string[] } {
    return { users: [...this.#users], left: [...this.#left] };
  }

  /** How long the members stay if no user joins; undefined while the pool is wanted. */
  leftMs(now: number): number | undefined {
    if (this.paused) return 0;
    return this.wanted ? undefined : Math.max(0, this.#unusedSince + this.size.lingerMs - now);
  }

  /** Returns false if this use is over already (POOL-1). `anew`: sizes asked for before no longer hold. */
  join({ user, min, max, lingerMs }: Extract<PoolSignal, { kind: "join" }>, anew: boolean): boolean {
    if (this.#left.has(user)) return false;
    this.#users.add(user);
    // Sizes asked for by earlier users hold while the pool lives; an empty pool starts anew.
    const size = this.#size;
    this.#size = anew
      ? { min, max, lingerMs: lingerMs ?? defaultLingerMs }
      : {
          min: Math.max(size.min, min),
          max: Math.max(size.max, max),
          lingerMs: Math.max(size.lingerMs, lingerMs ?? 0),
        };
    return true;
  }

  leave(user: string, now: number): void {
    if (this.#users.delete(user)) this.#unusedSince = now;
    this.#left.add(user);
    for (const one of this.#left) if (this.#left.size > leftRemembered) this.#left.delete(one);
  }
}
