/**
 * A worker: runs plain activities and sessions, is registered while it lives, and drains before it stops
 * (S13).
 */
import { bareSessionType, Name, type WorkerInfo } from "../../schemas/index.ts";
import { ServerClock } from "../../shared/bus/index.ts";
import { everythingAllowed, fleetHeaders } from "../../shared/fleet/index.ts";
import { once, type Service, startAll } from "../../shared/runtime/index.ts";
import { LiveWorkers } from "../../shared/sessions/index.ts";
import { ActivityService } from "./activities/index.ts";
import { Control } from "./control.ts";
import type { SessionLoad, SessionPart, WorkerDeps } from "./deps.ts";
import { Recordings } from "./lane/index.ts";
import { Registration } from "./registration.ts";
import { ProcessVitals, type Vitals } from "./vitals.ts";

type Ours = "view" | "recordings" | "loadChanged";
/** Undefined: this worker writes and reads the newest generation. */
type Fleetwide = "generation" | "fleetHeaders";
type WorkerBase = Omit<WorkerDeps, Ours | Fleetwide> & Partial<Pick<WorkerDeps, Fleetwide>>;

interface WorkerParts {
  /** Undefined: this worker holds no sessions. */
  sessions?: ((deps: WorkerDeps) => SessionPart) | undefined;
  /** The worker has drained after a request over the bus; the process may exit. */
  onDrained?: () => void;
  /** Default: those of this process. */
  vitals?: Vitals | undefined;
}

/** The number of running activities matters to people more than to placement, so it is written less often. */
const activityLoadGapMs = 1_000;

const noSessions: SessionLoad = {
  used: 0,
  max: 0,
  calls: { used: 0, max: 0 },
  perType: {},
  quotas: undefined,
  pools: {},
  warm: [],
  resourcesUsed: {},
  models: [],
  sessions: [],
};

export class Worker implements Service {
  readonly #deps: WorkerDeps;
  readonly #time: ServerClock;
  readonly #activities: ActivityService;
  readonly #sessions: SessionPart | undefined;
  readonly #registration: Registration;
  readonly #control: Control;
  readonly #recordings: Recordings;
  readonly #view: LiveWorkers;
  readonly #vitals: Vitals;
  #startedAt = 0;
  #draining = false;
  #stopping = false;

  constructor(given: WorkerBase, parts: WorkerParts = {}) {
    const { bus, names } = given;
    this.#vitals = parts.vitals ?? new ProcessVitals();
    this.#time = new ServerClock({ bus, stream: names.activitiesStream, runtime: given.runtime });
    const base = {
      ...{ generation: everythingAllowed, fleetHeaders: fleetHeaders("unknown") },
      ...given,
      runtime: { ...given.runtime, clock: this.#time },
    };
    this.#view = new LiveWorkers(base);
    this.#registration = new Registration(base, () => this.#describe());
    this.#recordings = new Recordings(base);
    const deps: WorkerDeps = {
      ...base,
      view: this.#view,
      recordings: this.#recordings,
      loadChanged: () => this.#registration.changed(),
    };
    this.#deps = deps;
    this.#activities = new ActivityService({
      ...deps,
      loadChanged: () => this.#registration.changed(activityLoadGapMs),
    });
    const callsChanged = () => this.#registration.changed(activityLoadGapMs);
    this.#sessions = base.config.sessions.max > 0 ? parts.sessions?.({ ...deps, callsChanged }) : undefined;
    this.#control = new Control(base, () => {
      void this.drain().then(() => {
        if (!this.#stopping) parts.onDrained?.();
      });
    });
  }

  async start(): Promise<void> {
    this.#vitals.start();
    await startAll([this.#time, this.#view, this.#control, this.#recordings]);
    this.#startedAt = this.#deps.runtime.clock.now();
    // Subscribe before registering: others take a registered worker that does not listen for dead (D1).
    await this.#activities.listen();
    await this.#registration.start();
    await startAll([this.#activities, this.#sessions]);
    const { runtime, identity } = this.#deps;
    runtime.announce({ kind: "worker.ready", workerId: identity.workerId });
  }

  /**
   * Takes no new work, and finishes or hands back the rest. The register shows it first, so that no claim
   * counts on this worker.
   */
  drain = once(async () => {
    const { runtime, identity } = this.#deps;
    this.#draining = true;
    runtime.announce({ kind: "worker.draining", workerId: identity.workerId });
    await Promise.all([this.#registration.writeNow(), this.#activities.drain(), this.#sessions?.drain()]);
  });

  stop = once(async () => {
    this.#stopping = true;
    await this.drain();
    await Promise.all([this.#activities.stop(), this.#sessions?.stop(), this.#control.stop()]);
    await this.#recordings.stop();
    await this.#registration.stop();
    await this.#view.stop();
    await this.#time.stop();
    this.#vitals.stop();
  });

  #describe(): WorkerInfo {
    const { identity, config, runtime, generation } = this.#deps;
    const load = this.#sessions?.load() ?? noSessions;
    const { slots, served } = this.#activities;
    const { incarnation: _, ...who } = identity;
    return {
      v: 1,
      ...who,
      startedAt: this.#startedAt,
      seenAt: runtime.clock.now(),
      draining: this.#draining,
      tags: [...config.tags],
      resources: { total: { ...config.resources }, used: load.resourcesUsed },
      activities: served.map(({ queue, name }) => ({ queue, name })),
      ...(generation.allows(2) && { ackWaitMs: config.activities.ackWaitMs }),
      sessionTypes: this.#sessionTypes(),
      slots: {
        activities: { used: slots.used, max: slots.max },
        calls: load.calls,
        sessions: { used: load.used, max: load.max },
      },
      perType: load.perType,
      ...(load.quotas && { quotas: load.quotas }),
      pools: load.pools,
      warm: load.warm,
      models: load.models,
      sessions: load.sessions,
      ...this.#vitals.read(),
    };
  }

  #sessionTypes(): Name[] {
    if (!this.#sessions) return [];
    const { app, config } = this.#deps;
    const types = config.sessions.types ?? [...app.sessions.keys(), bareSessionType];
    return types.map((type) => Name.parse(type));
  }
}
