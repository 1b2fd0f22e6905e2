/**
 * The workers as placement should see them: others as last heard of, plus what we sent them since; ourselves as we
 * are now. The register lags behind a burst of claims; this does not.
 */
import type { SessionClaim, WorkerInfo } from "../../../schemas/index.ts";
import type { SessionLoad } from "../deps.ts";
import type { SessionDeps } from "./session-deps.ts";

interface Sent {
  seenAt: number;
  claims: SessionClaim[];
}

export class Fleet {
  readonly #deps: SessionDeps;
  readonly #types: readonly string[];
  readonly #load: () => SessionLoad;
  readonly #sent = new Map<string, Sent>();
  draining = false;

  constructor(deps: SessionDeps, types: readonly string[], load: () => SessionLoad) {
    this.#deps = deps;
    this.#types = types;
    this.#load = load;
  }

  workers(): WorkerInfo[] {
    const { workerId } = this.#deps.identity;
    const others = (this.#deps.view?.workers() ?? []).filter((worker) => worker.workerId !== workerId);
    return [this.self(), ...others.map((worker) => this.#withSent(worker))];
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
      warm: load.warm,
      models: [],
      rssBytes: 0,
      eventLoopDelayMs: known?.eventLoopDelayMs ?? 0,
      sessions: [],
    };
  }

  /** Counted for the other until it has registered anew. */
  passedOn(workerId: string, claim: SessionClaim): void {
    const worker = this.#deps.view?.workers().find((one) => one.workerId === workerId);
    if (!worker) return;
    const sent = this.#sent.get(workerId);
    if (sent?.seenAt === worker.seenAt) sent.claims.push(claim);
    else this.#sent.set(workerId, { seenAt: worker.seenAt, claims: [claim] });
  }

  #withSent(worker: WorkerInfo): WorkerInfo {
    const sent = this.#sent.get(worker.workerId);
    if (!sent) return worker;
    if (sent.seenAt !== worker.seenAt) {
      this.#sent.delete(worker.workerId);
      return worker;
    }
    const { sessions } = worker.slots;
    const used = { ...worker.resources.used };
    const perType = { ...worker.perType };
    for (const { type, requires } of sent.claims) {
      for (const [name, need] of Object.entries(requires.resources)) used[name] = (used[name] ?? 0) + need;
      const ofType = perType[type];
      if (ofType) perType[type] = { ...ofType, used: ofType.used + 1 };
    }
    return {
      ...worker,
      perType,
      resources: { ...worker.resources, used },
      slots: { ...worker.slots, sessions: { ...sessions, used: sessions.used + sent.claims.length } },
    };
  }
}
