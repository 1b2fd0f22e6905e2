/** Sizes and lag of the streams, read at most once per interval however many pages and scrapers ask. */
import { z } from "zod";
import type { Bus, ConsumerInfo, StreamInfo, Subjects } from "../../../shared/bus/index.ts";
import { type TopologyOptions, topology } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { Clock } from "../../../shared/runtime/index.ts";

const ConsumerView = z.strictObject({
  name: z.string(),
  filter: z.string(),
  pending: z.int(),
  ackPending: z.int(),
  redelivered: z.int(),
});

const StreamView = z.strictObject({
  name: z.string(),
  /** A queue has readers: what lies in it waits for one of them. The others keep what is looked up. */
  role: z.enum(["queue", "history", "timers", "aside", "bucket", "blobs", "output", "dead", "audit"]),
  messages: z.int(),
  bytes: z.int(),
  lastSeq: z.int(),
  replicas: z.int(),
  consumers: z.array(ConsumerView),
});
type StreamView = z.infer<typeof StreamView>;

export const StreamsView = z.strictObject({
  at: z.number(),
  streams: z.array(StreamView),
  /** Streams that hold the history of a single instance. */
  ownHistories: z.int(),
  /** Number of streams of the account, including those of other applications. */
  total: z.int(),
  /** Bytes of all streams of the account; absent if the gateway may not ask. */
  stored: z.int().optional(),
});
export type StreamsView = z.infer<typeof StreamsView>;

export class StreamWatch {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #topology: TopologyOptions;
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  #latest: { at: number; view: StreamsView } | undefined;
  #asking: Promise<StreamsView> | undefined;

  constructor(options: {
    bus: Bus;
    names: Subjects;
    topology: TopologyOptions;
    clock: Clock;
    maxAgeMs?: number;
  }) {
    this.#bus = options.bus;
    this.#names = options.names;
    this.#topology = options.topology;
    this.#clock = options.clock;
    this.#maxAgeMs = options.maxAgeMs ?? 2_000;
  }

  /** The last reading, whatever its age. */
  get latest(): StreamsView | undefined {
    return this.#latest?.view;
  }

  async view(): Promise<StreamsView> {
    if (this.#latest && this.#clock.monotonic() - this.#latest.at < this.#maxAgeMs) return this.#latest.view;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<StreamsView> {
    const specs = topology(this.#names, this.#topology);
    const [streams, own, total, stored] = await Promise.all([
      Promise.all(specs.map((spec) => this.#stream(spec.name, this.#roleOf(spec.name)))),
      this.#bus.streamNames(this.#names.ownHistories),
      this.#bus.streamCount(),
      this.#stored(),
    ]);
    const view: StreamsView = {
      at: this.#clock.now(),
      streams: streams.filter((stream) => stream !== undefined),
      ownHistories: own.length,
      total,
      ...(stored === undefined ? {} : { stored }),
    };
    this.#latest = { at: this.#clock.monotonic(), view };
    return view;
  }

  /** Counts the streams of single histories without asking for each of them. Not every user has the permission. */
  async #stored(): Promise<number | undefined> {
    try {
      return (await this.#bus.account()).bytes;
    } catch (error) {
      if (isFault(error, "config")) return undefined;
      throw error;
    }
  }

  async #stream(name: string, role: StreamView["role"]): Promise<StreamView | undefined> {
    const info = await this.#bus.streamInfo(name);
    if (!info) return undefined;
    const consumers = role === "queue" && info.consumers > 0 ? await this.#bus.consumers(name) : [];
    return streamView(info, role, consumers);
  }

  #roleOf(name: string): StreamView["role"] {
    if (name === this.#names.deadStream) return "dead";
    if (name === this.#names.auditStream) return "audit";
    if (name === this.#names.streamsStream) return "output";
    if (name === this.#names.asideStream) return "aside";
    if (name === this.#names.timersStream && name !== this.#names.inboxStream) return "timers";
    if (name.startsWith("KV_")) return "bucket";
    if (name.startsWith("OBJ_")) return "blobs";
    return name.includes("HISTORY_") ? "history" : "queue";
  }
}

const streamView = (
  info: StreamInfo,
  role: StreamView["role"],
  consumers: readonly ConsumerInfo[],
): StreamView => ({
  name: info.name,
  role,
  messages: info.messages,
  bytes: info.bytes,
  lastSeq: info.lastSeq,
  replicas: info.replicas,
  consumers: consumers.map(({ name, filter, pending, ackPending, redelivered }) => ({
    name,
    filter,
    pending,
    ackPending,
    redelivered,
  })),
});
