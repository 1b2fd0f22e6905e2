/**
 * The workers as placement should see them: other workers as registered, corrected by the claims passed to
 * them and their answers since; this worker as it is now. The register lags behind a burst of claims; this
 * view does not.
 */
import type { SessionClaim, WorkerInfo } from "../../../../schemas/index.ts";
import type { SessionLoad } from "../../deps.ts";
import { poolOf } from "../pools/pool-of.ts";
import type { SessionDeps } from "../session-deps.ts";

/** This worker's own figures for placement. */
export type LoadFigures = Omit<SessionLoad, "models" | "sessions" | "quotas">;

/** Claims passed to another worker, and its answers, since it registered last. */
interface Since {
  seenAt: number;
  /** Sessions it holds, by its last answer. */
  used: number;
  unanswered: number;
  taken: SessionClaim[];
}

export class Fleet {
  readonly #deps: SessionDeps;
  readonly #types: readonly string[];
  readonly #load: () => LoadFigures;
  readonly #since = new Map<string, Since>();
  draining = false;

  constructor(deps: SessionDeps, types: readonly string[], load: () => LoadFigures) {
    this.#deps = deps;
    this.#types = types;
    this.#load = load;
  }

  workers(): WorkerInfo[] {
    const { workerId } = this.#deps.identity;
    const others = (this.#deps.view?.workers() ?? []).filter((worker) => worker.workerId !== workerId);
    return [this.self(), ...others.map((worker) => this.#asAnswered(worker))];
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

  /** Counts the claim for the other worker at once: many are passed on before the first is answered. */
  passing(workerId: string): void {
    const since = this.#sinceOf(workerId);
    if (since) since.unanswered++;
  }

  answered(workerId: string, answer: { used: number; taken: SessionClaim | undefined } | undefined): void {
    const since = this.#sinceOf(workerId);
    if (!since) return;
    since.unanswered = Math.max(0, since.unanswered - 1);
    if (!answer) return;
    since.used = answer.used;
    if (answer.taken) since.taken.push(answer.taken);
  }

  /** Valid until that worker has registered again. */
  #sinceOf(workerId: string): Since | undefined {
    const worker = this.#deps.view?.workers().find((one) => one.workerId === workerId);
    if (!worker) return undefined;
    const { seenAt, slots } = worker;
    const known = this.#since.get(workerId);
    if (known?.seenAt === seenAt) return known;
    const since: Since = { seenAt, used: slots.sessions.used, unanswered: 0, taken: [] };
    this.#since.set(workerId, since);
    return since;
  }

  #asAnswered(worker: WorkerInfo): WorkerInfo {
    const since = this.#since.get(worker.workerId);
    if (!since) return worker;
    if (since.seenAt !== worker.seenAt) {
      this.#since.delete(worker.workerId);
      return worker;
    }
    const { sessions } = worker.slots;
    const resources = { ...worker.resources.used };
    const perType = { ...worker.perType };
    const pools = { ...worker.pools };
    for (const { type, requires, metadata } of since.taken) {
      for (const [name, need] of Object.entries(requires.resources)) {
        resources[name] = (resources[name] ?? 0) + need;
      }
      const ofType = perType[type];
      if (ofType) perType[type] = { ...ofType, used: ofType.used + 1 };
      const pool = poolOf({ metadata });
      if (pool !== undefined) pools[pool] = (pools[pool] ?? 0) + 1;
    }
    return {
      ...worker,
      perType,
      pools,
      resources: { ...worker.resources, used: resources },
      slots: { ...worker.slots, sessions: { ...sessions, used: since.used + since.unanswered } },
    };
  }
}
