/** The engine in memory: no server, virtual time, random faults. */
import type { Clock } from "../../runtime/index.ts";
import type { Client } from "../../sdk/index.ts";
import { TimeKeeper } from "../clock/time-keeper.ts";
import { type BusFaults, noFaults } from "../memory/index.ts";
import { World } from "../world/world.ts";
import type { ServiceName, SystemMember, SystemOptions, TestSystem } from "./system.ts";

export class TwinSystem implements TestSystem {
  readonly #world: World;
  readonly #time: TimeKeeper;
  readonly #options: SystemOptions;

  constructor(options: SystemOptions, faults: Partial<BusFaults>) {
    const { app, seed, alwaysReplay, startsAt, onPoint, busy, progress } = options;
    this.#options = options;
    this.#world = new World({
      seed,
      alwaysReplay,
      app,
      startsAt,
      faults: { ...noFaults, ...faults },
      keepEnded: true,
      // More partitions would only mean more upkeep.
      partitions: 1,
      // The environment, not the member, lets time pass while a member starts.
      drive: (work) => work,
      onPoint,
    });
    this.#time = new TimeKeeper({
      clock: this.#world.clock,
      busy,
      progress,
      stuck: async () => this.#stuck(),
    });
  }

  get client(): Client {
    return this.#world.client;
  }

  get clock(): Clock {
    return this.#world.clock;
  }

  prepare(): Promise<void> {
    return this.wait(this.#world.prepare());
  }

  join(service: ServiceName): Promise<SystemMember> {
    return this.#world[service]();
  }

  wait<T>(work: Promise<T>): Promise<T> {
    return this.#time.wait(work);
  }

  skip(ms: number): Promise<void> {
    return this.#time.skip(ms);
  }

  async outage(ms: number): Promise<void> {
    this.#world.broker.stop();
    await this.skip(ms);
    this.#world.broker.start();
    await this.skip(0);
  }

  async close(): Promise<void> {
    this.#world.broker.stop();
    this.#world.outside.kill();
  }

  #stuck(): Error {
    const { broker, happenings } = this.#world;
    return this.#options.stuck([
      ...(broker.isUp ? [] : ["the server is away"]),
      ...happenings
        .filter(({ kind }) => kind === "instance.parked")
        .slice(-3)
        .map((each) => JSON.stringify(each)),
    ]);
  }
}
