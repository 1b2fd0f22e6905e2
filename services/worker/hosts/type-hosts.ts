/**
 * The hosts of one session type: started when needed, shared up to their room, retired after their term of
 * service, ended when the last session left.
 */

import { HoldfastError } from "../../../shared/errors/index.ts";
import { once, type Runtime, type Timer } from "../../../shared/runtime/index.ts";
import type { HostPolicy } from "./host-options.ts";
import type { HostPlace } from "./hosts.ts";
import type { IsolatedHost } from "./isolated/isolated-host.ts";

interface Kept {
  readonly host: IsolatedHost;
  readonly onRetire: Set<(why: string) => void>;
  sessions: number;
  calls: number;
  retired: string | undefined;
  /** Ends the host when it has been without sessions for a while, or retires it when it is too old. */
  linger: Timer | undefined;
  age: Timer | undefined;
}

export class TypeHosts {
  readonly #runtime: Runtime;
  readonly #policy: HostPolicy;
  readonly #start: () => IsolatedHost;
  readonly #kept = new Set<Kept>();
  readonly #ending = new Set<Promise<void>>();
  #stopped = false;

  constructor(runtime: Runtime, policy: HostPolicy, start: () => IsolatedHost) {
    this.#runtime = runtime;
    this.#policy = policy;
    this.#start = start;
  }

  async acquire(signal: AbortSignal): Promise<HostPlace> {
    if (this.#stopped) throw shuttingDown();
    const { sessionsPerHost } = this.#policy;
    const free = [...this.#kept].find(
      ({ host, sessions, retired }) => host.alive && retired === undefined && sessions < sessionsPerHost,
    );
    const kept = free ?? this.#add();
    const place = this.#enter(kept);
    try {
      await untilReady(kept.host, signal);
      return place;
    } catch (error) {
      place.leave();
      throw error;
    }
  }

  stop = once(async () => {
    this.#stopped = true;
    for (const kept of [...this.#kept]) this.#end(kept);
    await Promise.all(this.#ending);
  });

  #add(): Kept {
    const host = this.#start();
    const kept: Kept = {
      host,
      onRetire: new Set(),
      sessions: 0,
      calls: 0,
      retired: undefined,
      linger: undefined,
      age: undefined,
    };
    this.#kept.add(kept);
    host.onLost(() => this.#forget(kept));
    // Age counts from readiness: a host that starts slowly would otherwise be old before it served a session.
    host.ready.then(
      () => this.#age(kept),
      () => undefined, // callers that wait for it get the reason
    );
    return kept;
  }

  #age(kept: Kept): void {
    const { maxAgeMs } = this.#policy;
    if (maxAgeMs === undefined || !this.#kept.has(kept)) return;
    kept.age = this.#runtime.clock.after(maxAgeMs, () => this.#retire(kept, `it is ${maxAgeMs} ms old`));
  }

  #enter(kept: Kept): HostPlace {
    kept.sessions++;
    kept.linger?.cancel();
    let here = true;
    const listeners = new Set<(why: string) => void>();
    return {
      host: kept.host,
      ran: () => this.#ran(kept),
      onRetire: (listener) => {
        if (kept.retired !== undefined) listener(kept.retired);
        kept.onRetire.add(listener);
        listeners.add(listener);
        return () => kept.onRetire.delete(listener);
      },
      leave: ({ suspect = false } = {}) => {
        if (!here) return;
        here = false;
        for (const listener of listeners) kept.onRetire.delete(listener);
        kept.sessions--;
        if (suspect) this.#retire(kept, "code that would not end may still run there");
        this.#settle(kept);
      },
    };
  }

  #ran(kept: Kept): void {
    kept.calls++;
    const { maxCalls, maxRssBytes } = this.#policy;
    const rss = kept.host.rssBytes();
    if (maxCalls !== undefined && kept.calls >= maxCalls)
      this.#retire(kept, `it has served ${kept.calls} calls`);
    else if (maxRssBytes !== undefined && rss !== undefined && rss > maxRssBytes) {
      this.#retire(kept, `it holds ${Math.round(rss / 1024 / 1024)} MB`);
    }
  }

  #retire(kept: Kept, why: string): void {
    if (kept.retired !== undefined) return;
    kept.retired = why;
    for (const listener of [...kept.onRetire]) listener(why);
    this.#settle(kept);
  }

  /** A host without sessions: a retired one ends now, any other after a while. */
  #settle(kept: Kept): void {
    if (kept.sessions > 0 || !this.#kept.has(kept)) return;
    if (kept.retired !== undefined || this.#policy.lingerMs === 0 || this.#stopped) return this.#end(kept);
    kept.linger = this.#runtime.clock.after(this.#policy.lingerMs, () => this.#end(kept));
  }

  #end(kept: Kept): void {
    this.#forget(kept);
    const ending = kept.host.end().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #forget(kept: Kept): void {
    kept.linger?.cancel();
    kept.age?.cancel();
    this.#kept.delete(kept);
  }
}

const shuttingDown = (): HoldfastError =>
  new HoldfastError({ code: "worker_shutdown", message: "the worker is shutting down", retryable: true });

/** HOST-1, unless the signal aborts first. */
function untilReady(host: IsolatedHost, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason instanceof Error ? signal.reason : shuttingDown());
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    host.ready.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
