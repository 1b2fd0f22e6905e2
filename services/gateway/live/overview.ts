/** The data of the overview page. Pure. */
import { z } from "zod";
import { InstanceStatus } from "../../../schemas/index.ts";
import { FleetView } from "../../../shared/fleet/index.ts";
import type { LatencyView } from "./latency.ts";
import { Quantiles, Starts } from "./latency.ts";
import type { LiveView } from "./live-view.ts";
import type { StreamsView } from "./stream-watch.ts";
import { findTroubles, Trouble } from "./troubles.ts";

const perMinute = z.number();

export const Overview = z.strictObject({
  at: z.number(),
  bus: z.strictObject({ connected: z.boolean(), version: z.string(), awaySince: z.number().optional() }),
  /** Instances by status, without the engine's own. */
  counts: z.record(InstanceStatus, z.int()),
  engineCounts: z.record(InstanceStatus, z.int()),
  instancesNotShown: z.int(),
  rates: z.strictObject({
    startedPerMinute: perMinute,
    completedPerMinute: perMinute,
    failedPerMinute: perMinute,
    lostPerMinute: perMinute,
    series: z.array(
      z.strictObject({
        at: z.number(),
        started: z.int(),
        completed: z.int(),
        failed: z.int(),
        lost: z.int(),
      }),
    ),
  }),
  latency: z.strictObject({
    scheduleToStart: Quantiles.optional(),
    step: Quantiles.optional(),
    call: Quantiles.optional(),
  }),
  sessions: z.strictObject({
    active: z.int(),
    waiting: z.int(),
    lost: z.int(),
    total: z.int(),
    starts: z.array(Starts),
  }),
  workers: z.strictObject({
    alive: z.int(),
    draining: z.int(),
    activities: z.strictObject({ used: z.int(), max: z.int() }),
    sessions: z.strictObject({ used: z.int(), max: z.int() }),
  }),
  fleet: FleetView,
  services: z.strictObject({ orchestrators: z.int(), watchers: z.int(), gateways: z.int() }),
  streams: z.strictObject({
    /** Storage of the whole account if the gateway may ask for it, else of the streams of this installation. */
    bytes: z.int(),
    pending: z.int(),
    dead: z.int(),
    ownHistories: z.int(),
    /** Queues of waiting work; `inHand`: delivered and not yet settled. */
    queues: z.array(z.strictObject({ name: z.string(), waiting: z.int(), inHand: z.int(), bytes: z.int() })),
  }),
  troubles: z.array(Trouble),
});
export type Overview = z.infer<typeof Overview>;

interface OverviewInput {
  now: number;
  bus: Overview["bus"];
  live: LiveView;
  streams: StreamsView | undefined;
  latency: LatencyView;
  starts: Starts[];
  partitions: number;
  fleet: FleetView;
}

export function overview(input: OverviewInput): Overview {
  const { now, live, streams } = input;
  const sessions = live.sessions();
  const workers = live.workers();
  const phase = (...phases: string[]) => sessions.filter((session) => phases.includes(session.phase)).length;
  const service = (name: string) => live.services().filter((info) => info.service === name).length;
  const slots = (kind: "activities" | "sessions") => ({
    used: workers.reduce((sum, worker) => sum + worker.slots[kind].used, 0),
    max: workers.reduce((sum, worker) => sum + worker.slots[kind].max, 0),
  });
  return {
    at: now,
    bus: input.bus,
    counts: live.instances.counts(),
    engineCounts: live.instances.engineCounts(),
    instancesNotShown: live.instances.forgotten,
    rates: {
      startedPerMinute: live.rates.lastMinute("started", now),
      completedPerMinute: live.rates.lastMinute("completed", now),
      failedPerMinute: live.rates.lastMinute("failed", now),
      lostPerMinute: live.rates.lastMinute("lost", now),
      series: live.rates.series(now),
    },
    latency: input.latency,
    sessions: {
      active: phase("active", "rebuilding"),
      waiting: phase("opening", "claimed"),
      lost: phase("lost"),
      total: sessions.length,
      starts: input.starts,
    },
    workers: {
      alive: workers.length,
      draining: workers.filter((worker) => worker.draining).length,
      activities: slots("activities"),
      sessions: slots("sessions"),
    },
    fleet: input.fleet,
    services: {
      orchestrators: service("orchestrator"),
      watchers: service("watcher"),
      gateways: service("gateway"),
    },
    streams: {
      bytes: streams?.stored ?? sum(streams?.streams, (stream) => stream.bytes),
      pending: sum(streams?.streams, (stream) => sum(stream.consumers, (consumer) => consumer.pending)),
      dead: sum(streams?.streams, (stream) => (stream.role === "dead" ? stream.messages : 0)),
      ownHistories: streams?.ownHistories ?? 0,
      queues: (streams?.streams ?? [])
        .filter((stream) => stream.role === "queue")
        .map(({ name, bytes, consumers }) => ({
          name,
          waiting: sum(consumers, (consumer) => consumer.pending),
          inHand: sum(consumers, (consumer) => consumer.ackPending),
          bytes,
        })),
    },
    troubles: findTroubles({
      now,
      bus: input.bus,
      counts: live.instances.counts(),
      engineCounts: live.instances.engineCounts(),
      sessions,
      workers,
      services: live.services(),
      streams,
      fleet: input.fleet,
      partitions: { wanted: input.partitions, held: live.partitionsHeld() },
      lostPerMinute: live.rates.lastMinute("lost", now),
      failedPerMinute: live.rates.lastMinute("failed", now),
    }),
  };
}

const sum = <T>(list: readonly T[] | undefined, of: (item: T) => number): number =>
  (list ?? []).reduce((total, item) => total + of(item), 0);
