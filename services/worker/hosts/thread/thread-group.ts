/**
 * Several threads as one host: calls of one session run on all of them. Every thread runs `init` and has a
 * state of its own; the value that `share` returned is the same for all.
 *
 * Calls and activities go to the thread with the fewest runs. A request that makes, renames or ends a state
 * goes to every thread and is answered once, when all have answered. The first thread makes checkpoints and
 * snapshots.
 */
import type { Failure } from "../../../../schemas/index.ts";
import type { Carrier, CarrierListener, Exit } from "../isolated/carrier.ts";
import type { FromHost, HostRequest, Post, ToHost } from "../isolated/protocol.ts";

interface Everywhere {
  request: HostRequest;
  missing: number;
  failure: Failure | undefined;
  /** Threads that have answered `done`. */
  done: Set<Carrier>;
}

type InitRequest = Extract<HostRequest, { kind: "init" }>;

export class ThreadGroup implements Carrier {
  readonly pid = undefined;
  readonly #threads: readonly [Carrier, ...Carrier[]];
  readonly #shares: boolean;
  readonly #runs = new Map<number, Carrier>();
  readonly #everywhere = new Map<number, Everywhere>();
  /** `init` requests that wait for the shared value. */
  readonly #sharing = new Map<number, InitRequest>();
  /** Chunks and questions about blobs under way: each thread numbers its own. */
  readonly #asked = new Map<number, { thread: Carrier; number: number }>();
  readonly #ponged = new Map<Carrier, number>();
  #lastAsked = 0;
  #lastPong = 0;
  #ready = 0;
  #exited = false;
  #listener: CarrierListener | undefined;

  /** `shares`: the type defines `share`. */
  constructor(threads: readonly [Carrier, ...Carrier[]], { shares }: { shares: boolean }) {
    this.#threads = threads;
    this.#shares = shares;
  }

  readonly post: Post<ToHost> = (message) => {
    switch (message.kind) {
      case "request":
        return this.#ask(message.id, message.request);
      case "abort": {
        const at = this.#runs.get(message.id);
        for (const thread of at ? [at] : this.#threads) thread.post(message);
        return;
      }
      case "wrote": {
        const asked = this.#answeredBy(message.write);
        asked?.thread.post({ ...message, write: asked.number });
        return;
      }
      case "blob-done": {
        const asked = this.#answeredBy(message.ask);
        asked?.thread.post({ ...message, ask: asked.number });
        return;
      }
      case "ping":
        for (const thread of this.#threads) thread.post(message);
        return;
      case "event":
        return; // no thread may take events from the others: `ctx.session.events` refuses
    }
  };

  listen(listener: CarrierListener): void {
    this.#listener = listener;
    for (const thread of this.#threads) {
      thread.listen({
        message: (message) => this.#receive(thread, message),
        exit: (exit) => this.#exit(exit),
      });
    }
  }

  lastWords(): string {
    return this.#threads
      .map((thread) => thread.lastWords())
      .filter((words) => words !== "")
      .join("\n");
  }

  async end(graceMs: number): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.end(graceMs)));
  }

  #ask(id: number, request: HostRequest): void {
    const [first] = this.#threads;
    switch (request.kind) {
      case "call":
      case "activity":
        return this.#send(id, this.#leastBusy(), request);
      case "share":
      case "checkpoint":
      case "snapshot":
        return this.#send(id, first, request);
      case "init": {
        if (!this.#shares) return this.#sendEverywhere(id, request);
        this.#sharing.set(id, request);
        return this.#send(id, first, { ...request, kind: "share" });
      }
      case "adopt":
      case "shutdown":
        return this.#sendEverywhere(id, request);
    }
  }

  #send(id: number, thread: Carrier, request: HostRequest): void {
    this.#runs.set(id, thread);
    thread.post({ kind: "request", id, request });
  }

  #sendEverywhere(id: number, request: HostRequest): void {
    this.#everywhere.set(id, { request, missing: this.#threads.length, failure: undefined, done: new Set() });
    // Each thread gets a copy: bytes moved to one would be missing in the others.
    for (const thread of this.#threads) thread.post({ kind: "request", id, request });
  }

  #leastBusy(): Carrier {
    const load = new Map<Carrier, number>(this.#threads.map((thread) => [thread, 0]));
    for (const thread of this.#runs.values()) load.set(thread, (load.get(thread) ?? 0) + 1);
    let [best] = this.#threads;
    for (const thread of this.#threads) {
      if ((load.get(thread) ?? 0) < (load.get(best) ?? 0)) best = thread;
    }
    return best;
  }

  #receive(thread: Carrier, message: FromHost): void {
    switch (message.kind) {
      case "ready":
        if (++this.#ready === this.#threads.length) this.#toWorker(message);
        return;
      case "pong":
        this.#ponged.set(thread, message.n);
        return this.#pong(message);
      case "write":
        return this.#toWorker({ ...message, write: this.#askedBy(thread, message.write) });
      case "blob":
        return this.#toWorker({ ...message, ask: this.#askedBy(thread, message.ask) });
      case "done":
        return this.#done(thread, message);
      case "failed":
        return this.#failed(message.id, message.error);
      default:
        return this.#toWorker(message);
    }
  }

  /** The request number under which a thread's question reaches the worker. */
  #askedBy(thread: Carrier, number: number): number {
    this.#asked.set(++this.#lastAsked, { thread, number });
    return this.#lastAsked;
  }

  #answeredBy(asked: number): { thread: Carrier; number: number } | undefined {
    const by = this.#asked.get(asked);
    this.#asked.delete(asked);
    return by;
  }

  /** The host is alive only if all threads are. */
  #pong(message: Extract<FromHost, { kind: "pong" }>): void {
    const n = Math.min(...this.#threads.map((thread) => this.#ponged.get(thread) ?? 0));
    if (n <= this.#lastPong) return;
    this.#lastPong = n;
    this.#toWorker({ ...message, n });
  }

  #done(thread: Carrier, message: Extract<FromHost, { kind: "done" }>): void {
    const { id, value } = message;
    const init = this.#sharing.get(id);
    if (init) {
      this.#sharing.delete(id);
      this.#runs.delete(id);
      return this.#sendEverywhere(id, { ...init, shared: { value } });
    }
    const everywhere = this.#everywhere.get(id);
    if (everywhere) {
      everywhere.done.add(thread);
      return this.#answered(id, everywhere);
    }
    if (this.#runs.delete(id)) this.#toWorker(message);
  }

  #failed(id: number, error: Failure): void {
    this.#sharing.delete(id);
    const everywhere = this.#everywhere.get(id);
    if (everywhere) {
      everywhere.failure ??= error;
      return this.#answered(id, everywhere);
    }
    if (this.#runs.delete(id)) this.#toWorker({ kind: "failed", id, error });
  }

  #answered(id: number, everywhere: Everywhere): void {
    if (--everywhere.missing > 0) return;
    this.#everywhere.delete(id);
    const { failure, request, done } = everywhere;
    if (!failure) return this.#toWorker({ kind: "done", id, value: undefined });
    if (request.kind === "init") this.#undo(id, request.session.key, done);
    this.#toWorker({ kind: "failed", id, error: failure });
  }

  /** A state that only some threads could make is useless. No request waits for these answers. */
  #undo(id: number, key: string, threads: Iterable<Carrier>): void {
    for (const thread of threads)
      thread.post({ kind: "request", id: -id, request: { kind: "shutdown", key } });
  }

  /** The loss of one thread ends them all: the rest would not be the host that was asked for. */
  #exit(exit: Exit): void {
    if (this.#exited) return;
    this.#exited = true;
    void this.end(0).then(() => this.#listener?.exit(exit));
  }

  #toWorker(message: FromHost): void {
    this.#listener?.message(message);
  }
}
