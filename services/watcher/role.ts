/**
 * Several watchers may run; the one that holds the lease acts. Correctness never depends on the lease
 * (WATCHER-3); it only avoids double work.
 */
import type { LeaseValue } from "../../schemas/index.ts";
import { leaseKeys } from "../../shared/bus/index.ts";
import type { Lease, Leases } from "../../shared/leases/index.ts";
import type { Runtime, Service } from "../../shared/runtime/index.ts";
import { Repeating } from "./repeating.ts";

interface RoleOptions {
  id: string;
  leases: Leases;
  runtime: Runtime;
  ttlMs: number;
  /** The duties of the acting watcher. */
  duties: Service;
}

export class Role implements Service {
  readonly #options: RoleOptions;
  readonly #trying: Repeating;
  readonly #unlisten: () => void;
  #lease: Lease | undefined;
  /** Starting and stopping the duties happen one after the other. */
  #changing: Promise<void> = Promise.resolve();
  #standbyAnnounced = false;

  constructor(options: RoleOptions) {
    this.#options = options;
    // Several tries within a TTL: a free lease is claimed soon.
    this.#trying = new Repeating(options.runtime, "watcher.role", options.ttlMs / 6, () => this.#try());
    this.#unlisten = options.leases.onLost((lease) => {
      if (lease === this.#lease) void this.#stopDuties();
    });
  }

  get acting(): boolean {
    return this.#lease !== undefined && this.#options.leases.isHeld(this.#lease);
  }

  start(): Promise<void> {
    return this.#trying.start();
  }

  async stop(): Promise<void> {
    await this.#trying.stop();
    this.#unlisten();
    const lease = this.#lease;
    await this.#stopDuties();
    if (lease) await this.#options.leases.release(lease);
  }

  async #try(): Promise<void> {
    if (this.#lease !== undefined) return;
    const { id, leases, runtime, duties } = this.#options;
    const value: LeaseValue = { v: 1, holder: id };
    const outcome = await leases.claim(leaseKeys.service("watcher"), value);
    if (outcome.kind === "taken") {
      if (!this.#standbyAnnounced) runtime.announce({ kind: "watcher.standby", id });
      this.#standbyAnnounced = true;
      return;
    }
    this.#lease = outcome.lease;
    this.#standbyAnnounced = false;
    runtime.announce({ kind: "watcher.acting", id });
    try {
      await this.#change(() => duties.start());
    } catch (error) {
      // A watcher that cannot do the work must not keep others from it.
      await this.#stopDuties();
      await leases.release(outcome.lease);
      throw error;
    }
  }

  async #stopDuties(): Promise<void> {
    if (this.#lease === undefined) return;
    this.#lease = undefined;
    await this.#change(() => this.#options.duties.stop());
  }

  #change(act: () => Promise<void>): Promise<void> {
    const turn = this.#changing.then(act, act);
    this.#changing = turn.catch(() => undefined); // the caller gets the error
    return turn;
  }
}
