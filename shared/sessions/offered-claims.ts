/**
 * The registered workers as placement should see them: corrected by the claims that this process has offered
 * to them and by their answers since. The register lags behind a burst of claims; this view does not.
 */
import { poolMetadataKey, type SessionClaim, type WorkerInfo } from "../../schemas/index.ts";

/** Claims offered to a worker, and its answers, since it registered last. */
interface Since {
  seenAt: number;
  /** Sessions it holds, by its last answer. */
  used: number;
  unanswered: SessionClaim[];
  taken: SessionClaim[];
}

export class OfferedClaims {
  readonly #registered: () => readonly WorkerInfo[];
  readonly #since = new Map<string, Since>();

  constructor(registered: () => readonly WorkerInfo[]) {
    this.#registered = registered;
  }

  workers(): WorkerInfo[] {
    return this.#registered().map((worker) => this.#asAnswered(worker));
  }

  /** Counts the claim for the worker at once: many are offered before the first is answered. */
  offering(workerId: string, claim: SessionClaim): void {
    this.#sinceOf(workerId)?.unanswered.push(claim);
  }

  answered(workerId: string, claim: SessionClaim, answer?: { used: number; isTaken: boolean }): void {
    const since = this.#sinceOf(workerId);
    if (!since) return;
    since.unanswered = since.unanswered.filter((other) => other !== claim);
    if (!answer) return;
    since.used = answer.used;
    if (answer.isTaken) since.taken.push(claim);
  }

  /** Valid until that worker has registered again. */
  #sinceOf(workerId: string): Since | undefined {
    const worker = this.#registered().find((one) => one.workerId === workerId);
    if (!worker) return undefined;
    const { seenAt, slots } = worker;
    const known = this.#since.get(workerId);
    if (known?.seenAt === seenAt) return known;
    const since: Since = { seenAt, used: slots.sessions.used, unanswered: [], taken: [] };
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
    for (const { type, requires } of since.taken) {
      for (const [name, need] of Object.entries(requires.resources)) {
        resources[name] = (resources[name] ?? 0) + need;
      }
      const ofType = perType[type];
      if (ofType) perType[type] = { ...ofType, used: ofType.used + 1 };
    }
    // A turn opens several members of a pool at once, and they go to different workers.
    for (const { metadata } of [...since.taken, ...since.unanswered]) {
      const pool = metadata[poolMetadataKey];
      if (pool !== undefined) pools[pool] = (pools[pool] ?? 0) + 1;
    }
    return {
      ...worker,
      perType,
      pools,
      resources: { ...worker.resources, used: resources },
      slots: { ...worker.slots, sessions: { ...sessions, used: since.used + since.unanswered.length } },
    };
  }
}
