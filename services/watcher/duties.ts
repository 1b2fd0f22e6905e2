import type { Service } from "../../shared/runtime/index.ts";
import type { Histories, WatcherDeps } from "./deps.ts";
import { Expiries } from "./expiries.ts";
import { Purges } from "./purge.ts";
import { Reconciler } from "./reconciler.ts";
import { Repeating } from "./repeating.ts";
import { Sweep } from "./retention/index.ts";
import { Silences } from "./silences.ts";

/**
 * The duties of the acting watcher: it handles expiries as they come, and reconciles and sweeps from time to
 * time.
 */
export class Duties implements Service {
  readonly #deps: WatcherDeps;
  readonly #parts: Service[];

  constructor(deps: WatcherDeps, histories: Histories) {
    const { runtime, config } = deps;
    const purges = new Purges(deps);
    const reconciler = new Reconciler(deps, purges);
    const sweep = new Sweep(deps, histories);
    this.#deps = deps;
    this.#parts = [
      new Expiries(deps, purges),
      new Silences(deps),
      later(new Repeating(runtime, "watcher.reconcile", config.reconcileEveryMs, () => reconciler.round())),
      later(new Repeating(runtime, "watcher.sweep", config.sweepEveryMs, () => sweep.round())),
    ];
  }

  async start(): Promise<void> {
    const { grace, bus, registers } = this.#deps;
    await grace.compareServer(bus, registers.settings);
    for (const part of this.#parts) await part.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.stop()));
  }
}

/** `start` does not wait for the first round: expiries come first. */
const later = (service: Service): Service => ({
  async start() {
    void service.start();
  },
  stop: () => service.stop(),
});
