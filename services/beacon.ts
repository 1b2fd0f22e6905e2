/**
 * Keeps this process's entry in the `services` bucket; the key expires by itself when the process is gone.
 */
import { hostname } from "node:os";
import type { ServiceInfo } from "../schemas/index.ts";
import { ServiceInfo as ServiceInfoSchema } from "../schemas/index.ts";
import type { Bus } from "../shared/bus/index.ts";
import { bucketSubject, headerNames, type Subjects } from "../shared/bus/index.ts";
import { announceFault, once, type Runtime, type Service, type Timer } from "../shared/runtime/index.ts";
import { packageVersion } from "./version.ts";

export type Describe = () => Pick<
  Partial<ServiceInfo>,
  "acting" | "partitions" | "orchestrations" | "sessionTypes" | "counters"
>;

const ttlMs = 15_000;
const everyMs = 5_000;

interface BeaconOptions {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  service: string;
  id: string;
  describe?: Describe | undefined;
  /** Headers of the entry: version and generation of this process (E1). */
  headers: Record<string, string>;
}

export class ServiceBeacon implements Service {
  readonly #options: BeaconOptions;
  readonly #startedAt: number;
  readonly #version = packageVersion();
  #timer: Timer | undefined;
  #stopped = false;
  /** Writes go out one after the other, so that the removal is the last. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: BeaconOptions) {
    this.#options = options;
    this.#startedAt = options.runtime.clock.now();
  }

  async start(): Promise<void> {
    const { service } = ServiceInfoSchema.shape;
    if (service.safeParse(this.#options.service).success) await this.#write();
  }

  stop = once(async () => {
    this.#stopped = true;
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    await this.#writing;
    const { bus } = this.#options;
    if (bus.connected()) {
      await bus.publish(this.#subject(), new Uint8Array(), {
        headers: { [headerNames.kvOperation]: "DEL" },
        ttlMs,
      });
    }
  });

  async #write(): Promise<void> {
    const { bus, runtime } = this.#options;
    this.#timer = runtime.clock.after(everyMs, () => {
      if (!this.#stopped) void this.#write();
    });
    const body = new TextEncoder().encode(JSON.stringify(this.#info()));
    const { headers } = this.#options;
    this.#writing = bus.publish(this.#subject(), body, { ttlMs, headers }).catch((error: unknown) =>
      // The next write repairs it; the key lives longer than one interval.
      announceFault(runtime, "beacon", error, { code: "beacon_failed" }),
    );
    await this.#writing;
  }

  #subject(): string {
    const { names, service, id } = this.#options;
    return bucketSubject(names.bucket("services"), `${service}.${id}`);
  }

  #info(): ServiceInfo {
    const { service, id, describe, runtime } = this.#options;
    return ServiceInfoSchema.parse({
      v: 1,
      service,
      id,
      host: hostname(),
      pid: process.pid,
      version: this.#version,
      startedAt: this.#startedAt,
      seenAt: runtime.clock.now(),
      ...describe?.(),
    });
  }
}
