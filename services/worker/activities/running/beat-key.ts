/**
 * The sign of life of one run (BEAT-1), in the lease bucket.
 *
 * Written without a fence: a run that beats in time may write over an expiry that an outage of the bus has
 * caused, as long as no worker has reported it. Once the expiry is reported, the attempt is over and
 * everything that follows from it is late (T5).
 */
import type { LeaseValue } from "../../../../schemas/index.ts";
import { bucketSubject, encode, headerNames } from "../../../../shared/bus/index.ts";
import { type BeatAddress, beatKeys, beatTtlMs } from "../../../../shared/leases/index.ts";
import { announceFault, sleep } from "../../../../shared/runtime/index.ts";
import { Paced } from "../pulling/paced.ts";
import type { TaskDeps } from "./run-task.ts";

/** How long the removal of a key stays visible. It leaves no marker, which would look like an expiry. */
const removedMs = 60_000;
const removeTries = 10;

export class BeatKey {
  readonly #deps: TaskDeps;
  readonly #subject: string;
  readonly #body: Uint8Array;
  readonly #ttlMs: number;
  readonly #everyMs: number;
  readonly #writes: Paced;
  #failing = false;

  constructor(deps: TaskDeps, address: BeatAddress, everyMs: number) {
    this.#deps = deps;
    this.#subject = bucketSubject(deps.names.bucket("leases"), beatKeys.of(address));
    this.#body = encode({ v: 1, holder: deps.identity.workerId } satisfies LeaseValue);
    this.#ttlMs = beatTtlMs(address.heartbeatMs);
    this.#everyMs = everyMs;
    this.#writes = new Paced(deps.runtime.clock, everyMs, () => this.#write());
  }

  beat(): void {
    this.#writes.ask();
  }

  /**
   * Called when the run is over. Callers do not wait for the removal, so that it does not delay the report.
   */
  async remove(): Promise<void> {
    await this.#writes.close();
    const headers = { [headerNames.kvOperation]: "PURGE" };
    for (let tried = 1; tried <= removeTries; tried++) {
      if (await this.#publish(new Uint8Array(), removedMs, headers)) return;
      await sleep(this.#deps.runtime.clock, this.#everyMs);
    }
  }

  async #write(): Promise<void> {
    if (!(await this.#publish(this.#body, this.#ttlMs))) this.#writes.ask();
  }

  async #publish(body: Uint8Array, ttlMs: number, headers = {}): Promise<boolean> {
    try {
      const timeoutMs = Math.min(2000, this.#ttlMs / 2);
      const outcome = await this.#deps.bus.publish(this.#subject, body, { ttlMs, timeoutMs, headers });
      this.#failing &&= outcome.kind !== "stored";
      return outcome.kind === "stored";
    } catch (error) {
      // Announced once per series of failures: other parts announce the outage itself.
      if (!this.#failing) this.#announce(error);
      this.#failing = true;
      return false;
    }
  }

  #announce(error: unknown): void {
    announceFault(this.#deps.runtime, "worker.heartbeat", error, { otherwise: "beat_lost" });
  }
}
