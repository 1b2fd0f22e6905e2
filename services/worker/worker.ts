/** A worker: plain activities and sessions side by side, registered while it lives, drained before it goes (S13). */
import { bareSessionType, Name, type WorkerInfo } from "../../schemas/index.ts";
import { everythingAllowed, fleetHeaders } from "../../shared/fleet/index.ts";
import { once, type Service } from "../../shared/runtime/index.ts";
import { LiveWorkers } from "../../shared/sessions/index.ts";
import { ActivityService } from "./activities/index.ts";
import { Control } from "./control.ts";
import type { SessionLoad, SessionPart, WorkerDeps } from "./deps.ts";
import { Recordings } from "./lane/index.ts";
import { Registration } from "./registration.ts";
import { ProcessVitals } from "./vitals.ts";

type Ours = "view" | "recordings" | "loadChanged";
/** Absent: this worker writes and reads what is newest. */
type Fleetwide = "generation" | "fleetHeaders";
export type WorkerBase = Omit<WorkerDeps, Ours | Fleetwide> & Partial<Pick<WorkerDeps, Fleetwide>>;

export interface WorkerParts {
  /** Absent: this worker holds no sessions. */
  sessions?: ((deps: WorkerDeps) => SessionPart) | undefined;
  /** Drained because somebody asked for it over the bus; there is nothing left to do here. */
  onDrained?: () => void;
}

/** How many activities run concerns people more than placement: written less often. */
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
  readonly #activities: ActivityService;
  readonly #sessions: SessionPart | undefined;
  readonly #registration: Registration;
  readonly #control: Control;
  readonly #recordings: Recordings;
  readonly #view: LiveWorkers;
  readonly #vitals = new ProcessVitals();
  readonly #startedAt: number;
  #draining = false;
  #stopping = false;

  constructor(given: WorkerBase, parts: WorkerParts = {}) {
    const base = { generation: everythingAllowed, fleetHeaders: fleetHeaders("unknown"), ...given };
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
    this.#startedAt = base.runtime.clock.now();
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
    await this.#view.start();
    await this.#registration.start();
    await this.#control.start();
    await this.#recordings.start();
    await this.#activities.start();
    await this.#sessions?.start();
    const { runtime, identity } = this.#deps;
    runtime.announce({ kind: "worker.ready", workerId: identity.workerId });
  }

  /** Takes nothing new, finishes or hands back what it has. Said first, so that nobody counts on this worker. */
  drain = once(async () => {
    const { runtime, identity } = this.#deps;
    this.#draining = true;
    runtime.announce({ kind: "worker.draining", workerId: identity.workerId });
    await Promise.all([this.#registration.tell(), this.#activities.drain(), this.#sessions?.drain()]);
  });

  stop = once(async () => {
    this.#stopping = true;
    await this.drain();
    await Promise.all([this.#activities.stop(), this.#sessions?.stop(), this.#control.stop()]);
    await this.#recordings.stop();
    await this.#registration.stop();
    await this.#view.stop();
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
