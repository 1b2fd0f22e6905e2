/**
 * The contexts that user code gets: views of its session and task. Their methods send messages to the worker.
 */
import type { Failure } from "../../../schemas/index.ts";
import {
  type CallContext,
  type InitContext,
  requireMetadata,
  type SessionBlobs,
  type SessionView,
  type StreamWriter,
  type WorkerView,
  type WorkLog,
} from "../../../shared/definitions/index.ts";
import { fromFailure, HoldfastError } from "../../../shared/errors/index.ts";
import type { LazyAbort } from "../lazy-abort.ts";
import type { Hosted } from "./isolated/host-server.ts";
import type { BlobRequest, FromHost, LogLevel, Post, RunFacts, ToHost } from "./isolated/protocol.ts";

interface Asked {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

interface Write {
  of: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

export class Contexts {
  readonly #post: Post<FromHost>;
  readonly #threads: number;
  readonly #writes = new Map<number, Write>();
  readonly #asked = new Map<number, Asked>();
  #lastWrite = 0;
  #lastAsk = 0;

  constructor(post: Post<FromHost>, threads: number) {
    this.#post = post;
    this.#threads = threads;
  }

  init(id: number, hosted: Hosted, abort: LazyAbort, shared?: unknown): InitContext {
    const { key } = hosted.session;
    return {
      session: this.view(hosted),
      get signal() {
        return abort.signal;
      },
      log: this.log(id),
      threads: this.#threads,
      shared,
      reportModel: (model) => this.#post({ kind: "model", key, model: { ...model } }),
    };
  }

  run(id: number, facts: RunFacts, hosted: Hosted, abort: LazyAbort): CallContext {
    return new RunContext(this, id, facts, hosted, abort);
  }

  wrote(write: number, error: Failure | undefined): void {
    const waiting = this.#writes.get(write);
    this.#writes.delete(write);
    if (error) waiting?.reject(fromFailure(error));
    else waiting?.resolve();
  }

  blobDone({ ask, value, error }: Extract<ToHost, { kind: "blob-done" }>): void {
    const asked = this.#asked.get(ask);
    this.#asked.delete(ask);
    if (error) asked?.reject(fromFailure(error));
    else asked?.resolve(value);
  }

  /** The run is over, so its writes are no longer awaited. */
  ended(id: number): void {
    if (this.#writes.size === 0) return;
    for (const [write, { of, resolve }] of this.#writes) {
      if (of !== id) continue;
      this.#writes.delete(write);
      resolve();
    }
  }

  view(hosted: Hosted): Omit<SessionView, "events"> {
    const { key, metadata: _, ...facts } = hosted.session;
    return {
      ...facts,
      get metadata() {
        return hosted.session.metadata;
      },
      setMetadata: (wanted) => {
        const { change, after } = requireMetadata(hosted.session.metadata, wanted);
        hosted.session = { ...hosted.session, metadata: after };
        this.#post({ kind: "metadata", key, change });
      },
      blobs: askForBlobs((request) => this.#ask(key, request)),
      abort: (reason) => this.#post({ kind: "gave-up", key, reason: String(reason) }),
    };
  }

  #ask(key: string, request: BlobRequest): Promise<unknown> {
    const ask = ++this.#lastAsk;
    return new Promise((resolve, reject) => {
      this.#asked.set(ask, { resolve, reject });
      try {
        this.#post({ kind: "blob", key, ask, request });
      } catch (error) {
        this.#asked.delete(ask);
        reject(error);
      }
    });
  }

  heartbeat(id: number, details: unknown): void {
    this.#post({ kind: "heartbeat", id, details });
  }

  write(id: number, chunk: unknown): Promise<void> {
    const write = ++this.#lastWrite;
    return new Promise((resolve, reject) => {
      this.#writes.set(write, { of: id, resolve, reject });
      try {
        this.#post({ kind: "write", id, write, chunk });
      } catch (error) {
        this.#writes.delete(write);
        reject(error);
      }
    });
  }

  log(id: number): WorkLog {
    const at = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) =>
      this.#postLog({ kind: "log", id, level, message, fields });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }

  /** Fields that cannot be sent must not fail the code that logs them. */
  #postLog(line: Extract<FromHost, { kind: "log" }>): void {
    try {
      this.#post(line);
    } catch {
      this.#post({
        ...line,
        message: String(line.message),
        fields: { unsent: Object.keys(line.fields ?? {}) },
      });
    }
  }
}

/** The blobs of a session, each method as one question to the worker. */
export function askForBlobs(asked: (request: BlobRequest) => Promise<unknown>): SessionBlobs {
  // The worker's end (`sessions/holding/session-blobs.ts`) answers in these types.
  const ask = (request: BlobRequest) => asked(request) as Promise<never>;
  return {
    put: (name, data) => ask({ do: "put", name, data }),
    get: (name) => ask({ do: "get", name }),
    delete: (name) => ask({ do: "delete", name }),
    list: () => ask({ do: "list" }),
  };
}

// A class with getters on its prototype: each call gets one, and most calls use little of it.
class RunContext implements CallContext {
  readonly #contexts: Contexts;
  readonly #id: number;
  readonly #facts: RunFacts;
  readonly #hosted: Hosted;
  readonly #abort: LazyAbort;
  #session: SessionView | undefined;

  constructor(contexts: Contexts, id: number, facts: RunFacts, hosted: Hosted, abort: LazyAbort) {
    this.#contexts = contexts;
    this.#id = id;
    this.#facts = facts;
    this.#hosted = hosted;
    this.#abort = abort;
  }

  get instanceId(): string {
    return this.#facts.instanceId;
  }

  get name(): string {
    return this.#facts.name;
  }

  get attempt(): number {
    return this.#facts.attempt;
  }

  get workerId(): string {
    return this.#hosted.session.workerId;
  }

  get worker(): WorkerView {
    const { workerId: id, host, resourceId } = this.#hosted.session;
    return { id, host, resourceId };
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get lastHeartbeat(): unknown {
    return this.#facts.lastHeartbeat;
  }

  /** An arrow, so that `const { heartbeat } = ctx` works. */
  readonly heartbeat = (details?: unknown): void => this.#contexts.heartbeat(this.#id, details);

  get session(): SessionView {
    const hosted = this.#hosted;
    const { events, definition } = hosted;
    const abort = this.#abort;
    return (this.#session ??= {
      ...this.#contexts.view(hosted),
      get metadata() {
        return hosted.session.metadata;
      },
      get events() {
        if (definition && (definition.options.threads ?? 1) > 1) throw noEvents(definition.name);
        // A listener that outlived its run would take events that the next call waits for.
        return events.listen(abort.over);
      },
    });
  }

  get stream(): StreamWriter {
    return { write: (chunk) => this.#contexts.write(this.#id, chunk) };
  }

  get log(): WorkLog {
    return this.#contexts.log(this.#id);
  }
}

const noEvents = (type: string): HoldfastError =>
  new HoldfastError({
    code: "events_not_shared",
    message: `session type ${type} computes on several threads, which cannot share its events: send what it needs with the call`,
  });
