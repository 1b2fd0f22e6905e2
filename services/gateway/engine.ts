/** What the gateway asks the engine to do beside what the client can: operators' verbs, whole histories, changes. */
import type { Commit, SessionWork, WorkerControl } from "../../schemas/index.ts";
import { type Bus, encode, parseJson, type Subjects } from "../../shared/bus/index.ts";
import type { HistoryStore } from "../../shared/history/index.ts";
import { notFound, Problem, unknownOutcome } from "./http/problem.ts";
import type { SessionRow } from "./live/rows.ts";

const controlTimeoutMs = 2_000;

export class Engine {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #history: HistoryStore;

  constructor(bus: Bus, names: Subjects, history: HistoryStore) {
    this.#bus = bus;
    this.#names = names;
    this.#history = history;
  }

  /** All commits of all executions still stored, in order. */
  async history(instanceId: string): Promise<Commit[]> {
    const commits = await this.#history.readAll(instanceId);
    if (!commits || commits.length === 0) throw notFound("history of instance", instanceId);
    return commits;
  }

  /** A value too big for a message, by its digest. Only its own instance's: the key says whose it is. */
  async blob(instanceId: string, sha256: string): Promise<unknown> {
    const bytes = await this.#bus.blobs.get(`${instanceId}/${sha256}`);
    const parsed = bytes && parseJson(bytes);
    if (parsed?.kind !== "ok") throw notFound("blob", `${instanceId}/${sha256}`);
    return parsed.value;
  }

  async evict(session: SessionRow, reason?: string): Promise<void> {
    if (!session.workerId) {
      throw new Problem({ status: 409, code: "session_unheld", message: "nobody holds it" });
    }
    const work: SessionWork = {
      v: 1,
      kind: "evict",
      ...(session.epoch === undefined ? {} : { epoch: session.epoch }),
      ...(reason === undefined ? {} : { reason }),
    };
    const subject = this.#names.sessionWork(session.workerId, session.sessionId);
    const outcome = await this.#bus.publish(subject, encode(work));
    if (outcome.kind !== "stored") throw unknownOutcome();
  }

  async drain(workerId: string): Promise<void> {
    const control: WorkerControl = { kind: "drain" };
    const reply = await this.#bus.request(this.#names.workerControl(workerId), encode(control), {
      timeoutMs: controlTimeoutMs,
    });
    if (reply.kind === "reply") return;
    throw new Problem({
      status: 503,
      code: "worker_silent",
      message: `worker ${workerId} did not answer`,
      hint: "It may be gone or stalled; its sessions are lost when their leases expire.",
    });
  }

  /** Calls back on every change until stopped. */
  async onChange(instanceId: string, listener: () => void): Promise<() => void> {
    const subscription = await this.#bus.subscribe(this.#names.noticesOf(instanceId), {}, listener);
    return () => void subscription.stop();
  }
}
