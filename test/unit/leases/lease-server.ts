import {
  type Bus,
  bucketStream,
  defaultTopology,
  type PublishOptions,
  type StoredMessage,
  subjects,
  topology,
} from "../../../shared/bus/index.ts";
import type { Clock } from "../../../shared/runtime/index.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

const names = subjects();
const stream = bucketStream(names.bucket("leases"));
const spec = topology(names, defaultTopology).find(({ name }) => name === stream);

/** The bucket of leases on the twin, with every write that was tried. */
export class LeaseServer {
  readonly writes: { subject: string; at: number; options: PublishOptions }[] = [];
  readonly #clock: Clock;
  readonly #broker: MemoryBroker;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#broker = new MemoryBroker({ clock });
    if (!spec) throw new Error(`the topology has no ${stream}`);
    this.#broker.ensure({ ...spec, sequencesByTime: false });
  }

  /** `mute`: stores and does not say so. `away`: neither stores nor answers what is to be stored. */
  set mood(mood: "well" | "mute" | "away") {
    const { fate } = this.#broker;
    fate.faults = {
      ...fate.faults,
      publishUnanswered: mood === "mute" ? 1 : 0,
      publishLost: mood === "away" ? 1 : 0,
    };
  }

  /** How long an answer takes. */
  set latencyMs(ms: number) {
    const { fate } = this.#broker;
    fate.faults = { ...fate.faults, latencyMs: [ms / 2, ms / 2] };
  }

  bus(): Bus {
    const bus = this.#broker.connect();
    const publish = bus.publish.bind(bus);
    bus.publish = (subject, body, options = {}) => {
      this.writes.push({ subject, at: this.#clock.monotonic(), options });
      return publish(subject, body, options);
    };
    return bus;
  }

  last(subject: string): StoredMessage | undefined {
    return this.#broker.streams.get(stream)?.last(subject);
  }

  /** As another client would. */
  store(subject: string, headers: Record<string, string>): number {
    const stored = this.#broker.streams.get(stream)?.publish(subject, new Uint8Array(), { headers });
    if (stored?.kind !== "stored") throw new Error("not stored");
    return stored.seq;
  }
}
