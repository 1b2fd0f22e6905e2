/**
 * The sign of life of one run (BEAT-1), in the lease bucket.
 *
 * Written without a fence: whoever beats in time writes, also over an expiry that an outage of the bus has caused and
 * that nobody has told yet. Where it was told, the attempt is over and all that follows from it is late (T5).
 */
import type { LeaseValue } from "../../../schemas/index.ts";
import { bucketSubject, encode } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { type BeatAddress, beatKeys, beatTtlMs } from "../../../shared/leases/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import { Paced } from "./paced.ts";
import type { TaskDeps } from "./run-task.ts";

/** A removed key says so this long: no marker follows, which would look like an expiry. */
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

  /** The run is over. Not waited for: what is told of it must not be held up by this. */
  async remove(): Promise<void> {
    await this.#writes.close();
    const headers = { "KV-Operation": "PURGE" };
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
      // Once in a row: an outage is told by others.
      if (!this.#failing) this.#announce(error);
      this.#failing = true;
      return false;
    }
  }

  #announce(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const code = isFault(error) ? error.code : "beat_lost";
    this.#deps.runtime.announce({ kind: "fault", where: "worker.heartbeat", code, message, error });
  }
}
