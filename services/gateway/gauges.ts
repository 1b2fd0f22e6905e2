/** Metrics of the installation, from the read models and the streams, computed at each scrape. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Broadcast } from "./live/broadcast.ts";
import type { LiveView } from "./live/live-view.ts";
import type { Overview } from "./live/overview.ts";
import { sessionSums } from "./live/session-sums.ts";
import type { StreamsView } from "./live/stream-watch.ts";

interface GaugeSources {
  now(): number;
  live: LiveView;
  broadcast: Broadcast;
  streams(): StreamsView | undefined;
  overview(): Promise<Overview>;
}

export interface HttpMetrics {
  observe(route: string, method: string, status: number, seconds: number): void;
}

export class GatewayGauges implements HttpMetrics {
  readonly #sources: GaugeSources;
  readonly #gauges: ReturnType<typeof gauges>;
  readonly #requests: Histogram;
  readonly #refused: Counter;

  constructor(registry: Registry, sources: GaugeSources) {
    this.#sources = sources;
    this.#gauges = gauges(registry);
    this.#requests = new Histogram({
      name: "holdfast_http_request_seconds",
      help: "Requests to the gateway, by route",
      labelNames: ["route", "method", "status"],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers: [registry],
    });
    this.#refused = new Counter({
      name: "holdfast_http_refused_total",
      help: "Requests refused before they reach a route's action: 401, 403, 421, 429",
      labelNames: ["status"],
      registers: [registry],
    });
  }

  observe(route: string, method: string, status: number, seconds: number): void {
    this.#requests.observe({ route, method, status: String(status) }, seconds);
    if ([401, 403, 421, 429].includes(status)) this.#refused.inc({ status: String(status) });
  }

  /** Called before a scrape. Removes the series of things that no longer exist. */
  async fill(): Promise<void> {
    const overview = await this.#sources.overview();
    const set = this.#gauges;
    for (const gauge of Object.values(set)) gauge.reset();
    for (const counts of [overview.counts, overview.engineCounts])
      for (const [status, n] of Object.entries(counts)) set.instances.inc({ status }, n);
    this.#fillSessions();
    const { workers, services } = overview;
    set.workers.set({ state: "serving" }, workers.alive - workers.draining);
    set.workers.set({ state: "draining" }, workers.draining);
    for (const kind of ["activities", "calls", "sessions"] as const) {
      for (const worker of this.#sources.live.workers()) {
        set.slotsUsed.inc({ kind }, worker.slots[kind].used);
        set.slotsMax.inc({ kind }, worker.slots[kind].max);
      }
    }
    const delays = this.#sources.live.workers().map((worker) => worker.eventLoopDelayMs / 1000);
    set.workerDelay.set(Math.max(0, ...delays));
    set.services.set({ service: "orchestrator" }, services.orchestrators);
    set.services.set({ service: "watcher" }, services.watchers);
    set.services.set({ service: "gateway" }, services.gateways);
    for (const level of ["error", "warning"] as const) {
      set.troubles.set({ level }, overview.troubles.filter((trouble) => trouble.level === level).length);
    }
    set.pages.set(this.#sources.broadcast.size);
    this.#fillStreams(this.#sources.streams());
  }

  #fillSessions(): void {
    const set = this.#gauges;
    const sessions = this.#sources.live.sessions();
    for (const { type, phase } of sessions) set.sessions.inc({ type, phase });
    for (const [type, sums] of sessionSums(sessions, this.#sources.now())) {
      set.sessionAge.set({ type }, sums.oldestMs / 1000);
      set.sessionIdle.set({ type }, sums.idleMs / 1000);
      set.sessionCalls.set({ type, state: "running" }, sums.running);
      set.sessionCalls.set({ type, state: "queued" }, sums.queued);
      set.sessionHostBytes.set({ type }, sums.hostBytes);
      set.sessionBlobs.set({ type }, sums.blobs);
      set.sessionBlobBytes.set({ type }, sums.blobBytes);
      set.sessionInits.set({ type }, sums.inits);
      set.sessionRebuilds.set({ type }, sums.rebuilds);
      set.sessionOwners.set({ type }, sums.owners);
    }
  }

  #fillStreams(streams: StreamsView | undefined): void {
    const set = this.#gauges;
    for (const stream of streams?.streams ?? []) {
      set.streamBytes.set({ stream: stream.name }, stream.bytes);
      set.streamMessages.set({ stream: stream.name }, stream.messages);
      if (stream.role === "dead") set.dead.set(stream.messages);
      for (const consumer of stream.consumers) {
        const labels = { stream: stream.name, consumer: withoutIds(consumer.name) };
        set.pending.inc(labels, consumer.pending);
        set.ackPending.inc(labels, consumer.ackPending);
        set.redelivered.inc(labels, consumer.redelivered);
      }
    }
    set.ownHistories.set(streams?.ownHistories ?? 0);
  }
}

/** One series for all workers and one for all partitions: labels never contain a worker's id. */
export function withoutIds(consumer: string): string {
  if (consumer.startsWith("w_")) return "worker";
  return /^p\d+$/.test(consumer) ? "partition" : consumer;
}

function gauges(registry: Registry) {
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `holdfast_${name}`, help, labelNames, registers: [registry] });
  return {
    instances: gauge("instances", "Instances by status", ["status"]),
    sessions: gauge("sessions", "Sessions by type and phase", ["type", "phase"]),
    sessionAge: gauge("session_oldest_seconds", "Age of the oldest open session", ["type"]),
    sessionIdle: gauge("session_idle_seconds", "Longest time a held session has gone without a call", [
      "type",
    ]),
    sessionCalls: gauge("session_calls", "Calls that run or wait at holders of sessions", ["type", "state"]),
    sessionHostBytes: gauge("session_host_bytes", "Memory of session hosts that are processes", ["type"]),
    sessionBlobs: gauge("session_blobs", "What open sessions keep under names", ["type"]),
    sessionBlobBytes: gauge("session_blob_bytes", "Bytes that open sessions keep under names", ["type"]),
    sessionInits: gauge("session_inits", "How often init made the states of open sessions", ["type"]),
    sessionRebuilds: gauge("session_rebuilds", "How often open sessions were rebuilt", ["type"]),
    sessionOwners: gauge("session_owners", "Workers that have held open sessions, 20 a session at most", [
      "type",
    ]),
    workers: gauge("workers", "Workers that are alive", ["state"]),
    slotsUsed: gauge("worker_slots_used", "Slots in use over all workers", ["kind"]),
    slotsMax: gauge("worker_slots_max", "Slots over all workers", ["kind"]),
    workerDelay: gauge("worker_event_loop_lag_seconds", "The worst event loop delay of all workers"),
    services: gauge("services", "Orchestrators, watchers and gateways that are alive", ["service"]),
    troubles: gauge("troubles", "Problems that the overview shows", ["level"]),
    pages: gauge("live_pages", "Pages with a live connection to this gateway"),
    streamBytes: gauge("stream_bytes", "Bytes stored in a stream", ["stream"]),
    streamMessages: gauge("stream_messages", "Messages stored in a stream", ["stream"]),
    ownHistories: gauge("history_own_streams", "Instances whose history has a stream of its own"),
    dead: gauge("dlq_messages", "Dead letters waiting for a decision"),
    pending: gauge("consumer_pending", "Messages not yet delivered", ["stream", "consumer"]),
    ackPending: gauge("consumer_ack_pending", "Messages delivered and not settled", ["stream", "consumer"]),
    redelivered: gauge("consumer_redelivered", "Messages being delivered again", ["stream", "consumer"]),
  };
}
