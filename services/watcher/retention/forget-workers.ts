/**
 * Removes what dead workers leave behind: a consumer, and work that they never took. A worker is dead when it
 * has been unregistered for a good while and holds no lease: an incarnation does not come back after that
 * (S3), and if it does, it finds its consumer gone and creates it anew.
 */
import { LeaseValue } from "../../../schemas/index.ts";
import { bucketStream, bucketSubject, decode, leaseKeys } from "../../../shared/bus/index.ts";
import type { WatcherDeps } from "../deps.ts";
import type { RetentionStep } from "./step.ts";

/** How many waiting work messages one round looks at. */
const mostWork = 5000;

export class ForgetWorkers implements RetentionStep {
  readonly name = "workers";
  readonly #deps: WatcherDeps;
  /** Worker id → monotonic time at which it was first found missing. */
  #missing = new Map<string, number>();

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async run(limit: number): Promise<number> {
    const { bus, names, runtime, config, counters, acting } = this.#deps;
    // Work sent after this point may be for a worker that this round did not look at.
    const throughSeq = (await bus.streamInfo(names.sessionsStream))?.lastSeq ?? 0;
    const known = await this.#mentioned();
    for (const workerId of await this.#registered()) known.delete(workerId);
    const now = runtime.clock.monotonic();
    this.#missing = new Map([...known].map((id) => [id, this.#missing.get(id) ?? now]));
    const due = [...this.#missing].filter(([, since]) => now - since >= config.deadAfterMs);
    if (due.length === 0) return 0;
    const holders = await this.#holders();
    let done = 0;
    for (const [workerId] of due) {
      if (done >= limit || !acting()) break;
      if (holders.has(workerId)) continue;
      await this.#forget(workerId, throughSeq);
      this.#missing.delete(workerId);
      done++;
    }
    counters.removedWorkers += done;
    return done;
  }

  /** Workers that have a consumer, or messages waiting for them. */
  async #mentioned(): Promise<Set<string>> {
    const { bus, names } = this.#deps;
    const found = new Set<string>();
    for (const { name } of await bus.consumers(names.sessionsStream)) {
      const workerId = names.parseWorkerConsumer(name);
      if (workerId !== undefined) found.add(workerId);
    }
    const work = await bus.read(names.sessionsStream, names.allSessionWork, 1, mostWork);
    for (const { subject } of work ?? []) {
      const address = names.parseSessionWork(subject);
      if (address) found.add(address.workerId);
    }
    return found;
  }

  async #registered(): Promise<string[]> {
    const ids: string[] = [];
    for await (const { key } of this.#deps.registers.workers.bucket.entries()) ids.push(key);
    return ids;
  }

  /** Read only if there is a suspect. */
  async #holders(): Promise<Set<string>> {
    const { bus, names } = this.#deps;
    const bucket = names.bucket("leases");
    const holders = new Set<string>();
    const filter = bucketSubject(bucket, leaseKeys.allSessions);
    for await (const message of bus.lastPerSubject(bucketStream(bucket), filter)) {
      const value = decode(LeaseValue, message.body);
      if (value.kind === "ok") holders.add(value.value.holder);
    }
    return holders;
  }

  async #forget(workerId: string, throughSeq: number): Promise<void> {
    const { bus, names, runtime, counters } = this.#deps;
    const messages = await bus.purge(names.sessionsStream, names.sessionWorkOf(workerId), throughSeq);
    for (const { name } of await bus.consumers(names.sessionsStream))
      if (names.parseWorkerConsumer(name) === workerId) await bus.deleteConsumer(names.sessionsStream, name);
    if (messages === 0) return;
    counters.purged += messages;
    runtime.announce({ kind: "work.purged", workerId, sessionId: "*", messages });
  }
}
