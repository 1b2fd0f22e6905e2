/**
 * Removes entries of buckets that have outlived their time to live.
 *
 * A nats-server that was killed rebuilds a stream from its blocks. They say which messages have ended, and not which were
 * replaced: it replaces those anew. Where the message that replaced an entry has ended meanwhile (the mark of a released
 * lease, or the marker of an expiry), the server shows the replaced entry again, and may have forgotten when it ends
 * (nats-server issue 8505). Such an entry would stay for ever: a lease nobody holds, an orchestrator or a worker that is
 * gone, a version that nobody runs.
 *
 * WATCHER-8 An entry that should have ended a good while ago, by the clock of the server that stores it, is removed if
 *    it stays unchanged for a moment more. Its removal is a CAS on that write, so a holder that renewed it keeps it. It
 *    is a release and no expiry: the entry was over before. Every watcher does this, acting or not, because the lease of
 *    the acting watcher may be such an entry.
 */
import {
  type Bus,
  bucketStream,
  bucketSubject,
  expiringBuckets,
  headerNames,
  parseTtl,
  type StoredMessage,
  type Subjects,
} from "../../shared/bus/index.ts";
import { messageOf } from "../../shared/errors/index.ts";
import { tombstoneTtlMs } from "../../shared/leases/index.ts";
import { type Runtime, type Service, sleep } from "../../shared/runtime/index.ts";

/** Entries come back when a server starts again, which this process may not notice: it looks from time to time. */
const everyMs = 600_000;
/** Periodic timers of members are no longer than this: tests that skip months take longer ones for dates. */
const longestPauseMs = 30_000;
/** Pause after a look that failed. */
const tryAgainMs = 5_000;
/** How long after its end an entry is believed to stay. A server that starts ends what is due within a second. */
const overdueMs = 10_000;
const settleMs = 5_000;
const pageSize = 1_000;

interface OutlivedDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
}

/** True if the server should have ended this entry `overdueMs` ago or earlier. Marks and markers are no entries. */
export function isOutlived({ at, headers }: Pick<StoredMessage, "at" | "headers">, now: number): boolean {
  if (headers[headerNames.kvOperation] !== undefined || headers[headerNames.markerReason] !== undefined)
    return false;
  const ttlMs = parseTtl(headers[headerNames.ttl]);
  return ttlMs !== undefined && now - at >= ttlMs + overdueMs;
}

export class Outlived implements Service {
  readonly #deps: OutlivedDeps;
  #stopping = new AbortController();
  /** Aborted when a look is due at once. */
  #pause = new AbortController();
  #running: Promise<void> | undefined;

  constructor(deps: OutlivedDeps) {
    this.#deps = deps;
  }

  /** Does not wait for the first look. */
  async start(): Promise<void> {
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#pause.abort();
    await this.#running;
  }

  async #run(stopping: AbortSignal): Promise<void> {
    const { bus } = this.#deps;
    // The server may have been restarted.
    const unfollow = bus.onState((state) => {
      if (state.kind === "reconnected") this.#pause.abort();
    });
    while (!stopping.aborted) {
      this.#pause = new AbortController();
      const failed = !(await this.#round(stopping));
      await this.#wait(failed ? tryAgainMs : everyMs, this.#pause.signal);
    }
    unfollow();
  }

  async #wait(ms: number, ended: AbortSignal): Promise<void> {
    const { clock } = this.#deps.runtime;
    const until = clock.monotonic() + ms;
    while (!ended.aborted && clock.monotonic() < until)
      await sleep(clock, Math.min(longestPauseMs, until - clock.monotonic()), ended);
  }

  async #round(stopping: AbortSignal): Promise<boolean> {
    const { names, runtime } = this.#deps;
    const startedAt = runtime.clock.monotonic();
    try {
      const found: StoredMessage[] = [];
      for (const bucket of expiringBuckets(names)) found.push(...(await this.#find(bucket)));
      if (found.length === 0) return true;
      if ((await sleep(runtime.clock, settleMs, stopping)) === "aborted") return true;
      let done = 0;
      for (const entry of found) if (await this.#remove(entry)) done++;
      const ms = runtime.clock.monotonic() - startedAt;
      if (done > 0) runtime.announce({ kind: "retention.swept", step: "outlived", done, ms });
      return true;
    } catch (error) {
      const message = messageOf(error);
      runtime.announce({ kind: "fault", where: "watcher.outlived", code: "sweep_failed", message, error });
      return false;
    }
  }

  /** From the oldest message to those that are too young: what is renewed is among the last. */
  async #find(bucket: string): Promise<StoredMessage[]> {
    const { bus } = this.#deps;
    const stream = bucketStream(bucket);
    const info = await bus.streamInfo(stream);
    const now = info?.seenAt;
    if (now === undefined || Number.isNaN(now)) return [];
    const found: StoredMessage[] = [];
    for (let from = info?.firstSeq ?? 1; ; ) {
      const page = (await bus.read(stream, bucketSubject(bucket, ">"), from, pageSize)) ?? [];
      const last = page.at(-1);
      for (const message of page) if (isOutlived(message, now)) found.push(message);
      if (last === undefined || now - last.at < overdueMs) return found;
      from = last.seq + 1;
    }
  }

  /** Returns false if the entry has changed. Throws a transient fault where the server cannot be reached. */
  async #remove({ subject, seq }: StoredMessage): Promise<boolean> {
    const outcome = await this.#deps.bus.publish(subject, new Uint8Array(), {
      headers: { [headerNames.kvOperation]: "PURGE" },
      ttlMs: tombstoneTtlMs,
      expectLastSeq: seq,
    });
    return outcome.kind === "stored";
  }
}
