/**
 * Who uses a pool, and what they asked for together.
 *
 * POOL-1 A use joins once and leaves once, in whatever order both arrive: who has left does not join again.
 */
import type { PoolSignal } from "../../../schemas/index.ts";

const defaultLingerMs = 60_000;
/** Joins are late by seconds, if at all. */
const leftRemembered = 200;

export interface PoolSize {
  min: number;
  max: number;
  lingerMs: number;
}

export class PoolUsers {
  /** In the order they came. */
  readonly #users: Set<string>;
  readonly #left: Set<string>;
  #size: PoolSize;
  #lonelySince: number;

  constructor(
    known: { users: readonly string[]; left: readonly string[] },
    size: { min: number; max: number; lingerMs?: number | undefined },
    now: number,
  ) {
    this.#users = new Set(known.users);
    this.#left = new Set(known.left);
    this.#size = { ...size, lingerMs: size.lingerMs ?? defaultLingerMs };
    this.#lonelySince = now;
  }

  get size(): PoolSize {
    return this.#size;
  }

  get count(): number {
    return this.#users.size;
  }

  has(user: string): boolean {
    return this.#users.has(user);
  }

  /** To be carried over. */
  get known(): { users: string[]; left: string[] } {
    return { users: [...this.#users], left: [...this.#left] };
  }

  /** How long the members stay, if nobody comes; undefined while somebody is here. */
  leftMs(now: number): number | undefined {
    return this.#users.size > 0 ? undefined : Math.max(0, this.#lonelySince + this.#size.lingerMs - now);
  }

  /** False where it is over already (POOL-1). `anew`: what was asked for before holds no more. */
  join({ user, min, max, lingerMs }: Extract<PoolSignal, { kind: "join" }>, anew: boolean): boolean {
    if (this.#left.has(user)) return false;
    this.#users.add(user);
    // What the users before have asked for holds while the pool lives on; an empty one begins anew.
    const { size } = this;
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
    if (this.#users.delete(user)) this.#lonelySince = now;
    this.#left.add(user);
    for (const one of this.#left) if (this.#left.size > leftRemembered) this.#left.delete(one);
  }
}
