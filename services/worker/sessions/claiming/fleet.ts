/** The workers as placement should see them: others as they answered last, this worker as it is now. */
import type { WorkerInfo } from "../../../../schemas/index.ts";
import { OfferedClaims } from "../../../../shared/sessions/index.ts";
import type { SessionLoad } from "../../deps.ts";
import type { SessionDeps } from "../session-deps.ts";

/** This worker's own figures for placement. */
export type LoadFigures = Omit<SessionLoad, "models" | "sessions" | "quotas">;

export class Fleet {
  readonly #deps: SessionDeps;
  readonly #types: readonly string[];
  readonly #load: () => LoadFigures;
  readonly others: OfferedClaims;
  draining = false;

  constructor(deps: SessionDeps, types: readonly string[], load: () => LoadFigures) {
    this.#deps = deps;
    this.#types = types;
    this.#load = load;
    const { workerId } = deps.identity;
    this.others = new OfferedClaims(() =>
      (deps.view?.workers() ?? []).filter((worker) => worker.workerId !== workerId),
    );
  }

  workers(): WorkerInfo[] {
    return [this.self(), ...this.others.workers()];
  }

  self(): WorkerInfo {
    const { identity, config, runtime, view } = this.#deps;
    const { workerId, nodeId, host, pid, resourceId, buildId } = identity;
    const load = this.#load();
    const known = view?.workers().find((worker) => worker.workerId === workerId);
    const now = runtime.clock.now();
    const nothing = { used: 0, max: 0 };
    return {
      ...{ v: 1, workerId, nodeId, host, pid, resourceId, buildId, startedAt: now, seenAt: now },
      draining: this.draining,
      tags: [...config.tags],
      resources: { total: { ...config.resources }, used: load.resourcesUsed },
      activities: [],
      sessionTypes: this.#types as WorkerInfo["sessionTypes"],
      slots: { activities: nothing, calls: load.calls, sessions: { used: load.used, max: load.max } },
      perType: load.perType,
      pools: load.pools,
      warm: load.warm,
      models: [],
      rssBytes: 0,
      eventLoopDelayMs: known?.eventLoopDelayMs ?? 0,
      sessions: [],
    };
  }
}
