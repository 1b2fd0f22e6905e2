/**
 * Room that this worker still has for sessions (S10): counts owned leases and claims under way, never running
 * calls. Giving a place back twice has no effect.
 */
import type { Requirements } from "../../../../schemas/index.ts";

export interface Place {
  free(): void;
}

interface CapacityLimits {
  max: number;
  maxOf: (type: string) => number;
  resources: Readonly<Record<string, number>>;
}

export class Capacity {
  readonly #limits: CapacityLimits;
  readonly #onChange: () => void;
  readonly #perType = new Map<string, number>();
  readonly #perPool = new Map<string, number>();
  readonly #resources = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  #used = 0;

  constructor(limits: CapacityLimits, onChange: () => void) {
    this.#limits = limits;
    this.#onChange = onChange;
  }

  get used(): number {
    return this.#used;
  }

  get max(): number {
    return this.#limits.max;
  }

  usedBy(type: string): number {
    return this.#perType.get(type) ?? 0;
  }

  maxOf(type: string): number {
    return Math.min(this.#limits.maxOf(type), this.#limits.max);
  }

  resourcesUsed(): Record<string, number> {
    return Object.fromEntries(this.#resources);
  }

  /** Number of members held here, by pool. */
  pools(): Record<string, number> {
    return Object.fromEntries(this.#perPool);
  }

  roomLeft(type: string): number {
    return Math.min(this.#limits.max - this.#used, this.maxOf(type) - this.usedBy(type));
  }

  take(type: string, requires: Requirements, pool?: string): Place | undefined {
    const needs = Object.entries(requires.resources);
    const enough = needs.every(
      ([name, need]) => (this.#limits.resources[name] ?? 0) - (this.#resources.get(name) ?? 0) >= need,
    );
    if (!enough || this.roomLeft(type) <= 0) return undefined;
    this.#count(type, needs, pool, 1);
    let held = true;
    return {
      free: () => {
        if (!held) return;
        held = false;
        this.#count(type, needs, pool, -1);
        for (const listener of this.#listeners) listener();
      },
    };
  }

  /** Calls the listener whenever a place came free. */
  onRoom(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #count(type: string, needs: [string, number][], pool: string | undefined, by: 1 | -1): void {
    this.#used += by;
    this.#perType.set(type, this.usedBy(type) + by);
    if (pool !== undefined) this.#countPool(pool, by);
    for (const [name, need] of needs) this.#resources.set(name, (this.#resources.get(name) ?? 0) + by * need);
    this.#onChange();
  }

  /** Pools come and go, unlike types: a pool without members is removed from the map. */
  #countPool(pool: string, by: 1 | -1): void {
    const members = (this.#perPool.get(pool) ?? 0) + by;
    if (members > 0) this.#perPool.set(pool, members);
    else this.#perPool.delete(pool);
  }
}
