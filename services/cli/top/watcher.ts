/** Follows the read models of an installation and sums them up on request. */

import { type InstanceStatus, InstanceSummary, ServiceInfo, SessionRecord } from "../../../schemas/index.ts";
import { Bucket, type Stoppable, TypedBucket, type TypedEvent } from "../../../shared/bus/index.ts";
import { once, type Service, silent } from "../../../shared/runtime/index.ts";
import { LiveWorkers } from "../../../shared/sessions/index.ts";
import { Rates } from "../../../shared/wording/index.ts";
import type { CliConnection } from "../connection/client-command.ts";
import { statuses } from "../terminal/options.ts";
import { type Queue, type Sample, topSessions, topWorker } from "./sample.ts";

type Deps = Pick<CliConnection, "bus" | "names">;

export class TopWatcher implements Service {
  readonly #deps: Deps;
  readonly #now: () => number;
  readonly #instances = new Map<string, InstanceStatus>();
  readonly #sessions = new Map<string, SessionRecord>();
  readonly #services = new Map<string, ServiceInfo>();
  readonly #workers: LiveWorkers;
  readonly #rates = new Rates();
  #since = 0;
  #watches: Stoppable[] = [];

  constructor(deps: Deps, now: () => number = Date.now) {
    this.#deps = deps;
    this.#now = now;
    this.#workers = new LiveWorkers({ ...deps, runtime: { announce: silent } });
  }

  async start(): Promise<void> {
    await Promise.all([
      this.#workers.start(),
      this.#follow("instances", InstanceSummary, (event) => this.#instance(event)),
      this.#follow("sessions", SessionRecord, (event) => this.#session(event)),
      this.#follow("services", ServiceInfo, (event) => {
        if (event.kind === "put") this.#services.set(event.key, event.value);
        else this.#services.delete(event.key);
      }),
    ]);
    // Entries from before the watch do not count towards the rates.
    this.#since = this.#now();
  }

  stop = once(async () => {
    await Promise.all([this.#workers.stop(), ...this.#watches.map((watch) => watch.stop())]);
  });

  async sample(): Promise<Sample> {
    const { bus, names } = this.#deps;
    const queues = [names.inboxStream, names.activitiesStream, names.claimsStream, names.sessionsStream];
    const [waiting, dead] = await Promise.all([
      Promise.all(queues.map((name) => this.#queue(name))),
      bus.streamInfo(names.deadStream),
    ]);
    const now = this.#now();
    const workers = this.#workers.workers();
    const since = this.#since;
    return {
      at: now,
      instances: this.#counts(),
      perSecond: {
        started: this.#rates.perSecond("started", now, since),
        completed: this.#rates.perSecond("completed", now, since),
        failed: this.#rates.perSecond("failed", now, since),
      },
      lostPerMinute: this.#rates.lastMinute("lost", now),
      services: {
        orchestrator: this.#alive("orchestrator"),
        watcher: this.#alive("watcher"),
        gateway: this.#alive("gateway"),
      },
      queues: waiting,
      deadLetters: dead?.messages ?? 0,
      workers: workers.map(topWorker).sort((a, b) => (a.workerId < b.workerId ? -1 : 1)),
      sessions: topSessions(this.#sessions.values(), workers),
    };
  }

  async #follow<T>(
    bucket: "instances" | "sessions" | "services",
    schema: ConstructorParameters<typeof TypedBucket<T>>[1],
    onEntry: (event: TypedEvent<T>) => void,
  ): Promise<void> {
    const { bus, names } = this.#deps;
    const typed = new TypedBucket<T>(new Bucket(bus, names.bucket(bucket)), schema, silent);
    let onCaughtUp: () => void = () => undefined;
    const known = new Promise<void>((resolve) => {
      onCaughtUp = resolve;
    });
    this.#watches.push(await typed.watch(">", { onEntry, onCaughtUp }));
    await known;
  }

  #instance(event: TypedEvent<InstanceSummary>): void {
    if (event.kind !== "put") {
      this.#instances.delete(event.key);
      return;
    }
    const { status } = event.value;
    const before = this.#instances.get(event.key);
    this.#instances.set(event.key, status);
    if (this.#since === 0 || before === status) return;
    const now = this.#now();
    if ((before === undefined || before === "pending") && status !== "pending")
      this.#rates.add("started", now, now);
    if (status === "completed") this.#rates.add("completed", now, now);
    if (status === "failed") this.#rates.add("failed", now, now);
  }

  #session(event: TypedEvent<SessionRecord>): void {
    if (event.kind !== "put") {
      this.#sessions.delete(event.key);
      return;
    }
    const before = this.#sessions.get(event.key);
    this.#sessions.set(event.key, event.value);
    // A session that is claimed again at once is never recorded as lost, but its last loss is. Losses from
    // before the watch count by the time they happened, as in the dashboard.
    const lost = event.value.lost?.at;
    if (lost !== undefined && lost !== before?.lost?.at) this.#rates.add("lost", lost, this.#now());
  }

  #counts(): Record<InstanceStatus, number> {
    const counts = Object.fromEntries(statuses.map((status) => [status, 0])) as Record<
      InstanceStatus,
      number
    >;
    for (const status of this.#instances.values()) counts[status]++;
    return counts;
  }

  #alive(service: ServiceInfo["service"]): number {
    return [...this.#services.values()].filter((info) => info.service === service).length;
  }

  async #queue(name: string): Promise<Queue> {
    const consumers = await this.#deps.bus.consumers(name);
    const sum = (of: "pending" | "ackPending") => consumers.reduce((total, one) => total + one[of], 0);
    return { name, waiting: sum("pending"), running: sum("ackPending") };
  }
}
