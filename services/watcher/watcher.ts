import { type Bus, ServerClock, type Subjects } from "../../shared/bus/index.ts";
import { everythingAllowed, type Generation } from "../../shared/fleet/index.ts";
import { LeaseKeeper } from "../../shared/leases/index.ts";
import { once, type Runtime } from "../../shared/runtime/index.ts";
import type { Describe } from "../beacon.ts";
import type { RunnableService } from "../run-service.ts";
import type { WatcherConfig } from "./config.ts";
import { type Counters, newCounters } from "./counters.ts";
import { type Histories, openRegisters, type WatcherDeps } from "./deps.ts";
import { Duties } from "./duties.ts";
import { Grace } from "./grace.ts";
import { Outlived } from "./outlived.ts";
import { Role } from "./role.ts";

interface WatcherOptions {
  id: string;
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  config: WatcherConfig;
  histories: Histories;
  /** Which generation may be written now (E1). Default: the newest. */
  generation?: Pick<Generation, "allows">;
}

/** Reports lost sessions to their instances, and cleans up what has ended. Several may run, one acts. */
export class Watcher implements RunnableService {
  readonly #time: ServerClock;
  readonly #leases: LeaseKeeper;
  readonly #outlived: Outlived;
  readonly #role: Role;
  readonly #counters: Counters = newCounters();
  readonly #stopFollowing: () => void;

  constructor(options: WatcherOptions) {
    const { id, bus, names, config, histories, generation = everythingAllowed } = options;
    this.#time = new ServerClock({ bus, stream: names.timersStream, runtime: options.runtime });
    const runtime: Runtime = { ...options.runtime, clock: this.#time };
    const grace = new Grace(runtime, config.graceMs);
    this.#stopFollowing = grace.follow(bus);
    this.#leases = new LeaseKeeper({
      bus,
      bucket: names.engineBucket,
      runtime,
      ttlMs: config.leaseTtlMs,
      giveUpAfterMs: config.leaseTtlMs,
    });
    const deps: WatcherDeps = {
      bus,
      names,
      runtime,
      config,
      registers: openRegisters(bus, names, runtime),
      generation,
      counters: this.#counters,
      grace,
      acting: () => this.acting,
    };
    this.#outlived = new Outlived(deps);
    const duties = new Duties(deps, histories);
    this.#role = new Role({ id, leases: this.#leases, runtime, ttlMs: config.leaseTtlMs, duties });
  }

  get acting(): boolean {
    return this.#role.acting;
  }

  describe: Describe = () => ({ acting: this.acting, counters: { ...this.#counters } });

  /** Resolves when this watcher acts, or knows that another one does. */
  start = once(async () => {
    await this.#time.start();
    await this.#leases.start();
    await this.#outlived.start();
    await this.#role.start();
  });

  stop = once(async () => {
    await this.#role.stop();
    await this.#outlived.stop();
    await this.#leases.stop();
    await this.#time.stop();
    this.#stopFollowing();
  });
}
