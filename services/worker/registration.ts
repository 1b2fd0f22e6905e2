/**
 * Writes to the `workers` bucket that this worker is alive and how busy it is. The key expires when the
 * worker dies.
 */
import type { WorkerInfo } from "../../schemas/index.ts";
import { Bucket, encode } from "../../shared/bus/index.ts";
import { announceFault, once, type Service, type Timer } from "../../shared/runtime/index.ts";
import type { WorkerDeps } from "./deps.ts";

/** Least time between two writes, however often the load changes. */
const shortestGapMs = 200;
/** Until an entry is tried again that may not have been stored. */
const tryAgainMs = 1_000;
/** A long entry is written less often: every member of the fleet reads each of them. */
const bytesPerMs = 200;
/** Well below the largest message that a server takes. */
const mostBytes = 512 * 1024;
const mostSessions = 1_000;
const goneTtlMs = 60_000;

type RegistrationDeps = Pick<
  WorkerDeps,
  "bus" | "names" | "runtime" | "identity" | "config" | "fleetHeaders"
>;

export class Registration implements Service {
  readonly #deps: RegistrationDeps;
  readonly #describe: () => WorkerInfo;
  readonly #bucket: Bucket;
  #timer: { at: number; handle: Timer } | undefined;
  #writing: Promise<void> = Promise.resolve();
  #wroteAt = Number.NEGATIVE_INFINITY;
  #wroteBytes = 0;
  #stopped = false;

  constructor(deps: RegistrationDeps, describe: () => WorkerInfo) {
    this.#deps = deps;
    this.#describe = describe;
    this.#bucket = new Bucket(deps.bus, deps.names.bucket("workers"), { random: deps.runtime.random });
  }

  async start(): Promise<void> {
    await this.#write();
  }

  /** The description has changed: write it, but not sooner than `gapMs` after the last write. */
  changed(gapMs = shortestGapMs): void {
    if (!Number.isFinite(this.#wroteAt)) return;
    this.#arm(this.#wroteAt + Math.max(gapMs, this.#wroteBytes / bytesPerMs));
  }

  /** Writes the present description; resolves when it is stored. */
  async writeNow(): Promise<void> {
    await this.#writing;
    if (!this.#stopped) await this.#write();
  }

  stop = once(async () => {
    this.#stopped = true;
    this.#timer?.handle.cancel();
    await this.#writing;
    if (!Number.isFinite(this.#wroteAt) || !this.#deps.bus.connected()) return;
    await this.#bucket
      .delete(this.#deps.identity.workerId, { ttlMs: goneTtlMs, timeoutMs: 2_000 })
      .catch((error: unknown) => this.#announce(error)); // the key expires by its time to live
  });

  #arm(at: number): void {
    if (this.#stopped || (this.#timer && this.#timer.at <= at)) return;
    this.#timer?.handle.cancel();
    const { clock } = this.#deps.runtime;
    const handle = clock.after(Math.max(0, at - clock.monotonic()), () => void this.#write());
    this.#timer = { at, handle };
  }

  #write(): Promise<void> {
    const { clock } = this.#deps.runtime;
    this.#timer?.handle.cancel();
    this.#timer = undefined;
    this.#wroteAt = clock.monotonic();
    this.#writing = this.#put().catch((error: unknown) => {
      this.#announce(error);
      this.#arm(clock.monotonic() + tryAgainMs);
    });
    this.#arm(this.#wroteAt + this.#deps.config.registration.everyMs);
    return this.#writing;
  }

  async #put(): Promise<void> {
    const { identity, config } = this.#deps;
    const entry = bounded(this.#describe());
    this.#wroteBytes = entry.length;
    await this.#bucket.put(identity.workerId, entry, {
      ttlMs: config.registration.ttlMs,
      timeoutMs: 2_000,
      headers: this.#deps.fleetHeaders,
    });
  }

  #announce(error: unknown): void {
    announceFault(this.#deps.runtime, "worker.registration", error, { code: "registration_failed" });
  }
}

/** Users decide how big a snapshot is. An entry that is too big is written without snapshots. */
function bounded(info: WorkerInfo): Uint8Array {
  const whole = info.sessions.length > 4 * mostSessions ? undefined : encode(info);
  if (whole && whole.length <= mostBytes) return whole;
  const sessions = info.sessions.slice(0, mostSessions).map(({ snapshot: _, ...rest }) => rest);
  return encode({ ...info, sessions });
}
