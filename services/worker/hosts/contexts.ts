/** What user code is handed: views of its session and task whose acts are messages to the worker. */
import type { Failure } from "../../../schemas/index.ts";
import type {
  CallContext,
  InitContext,
  SessionView,
  StreamWriter,
  WorkerView,
  WorkLog,
} from "../../../shared/definitions/index.ts";
import { fromFailure, HoldfastError } from "../../../shared/errors/index.ts";
import type { LazyAbort } from "../lazy-abort.ts";
import type { Hosted } from "./host-server.ts";
import type { FromHost, LogLevel, Post, RunFacts } from "./protocol.ts";

interface Write {
  of: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

export class Contexts {
  readonly #post: Post<FromHost>;
  readonly #threads: number;
  readonly #writes = new Map<number, Write>();
  #lastWrite = 0;

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

  /** Nobody waits for the writes of a run that is over. */
  ended(id: number): void {
    if (this.#writes.size === 0) return;
    for (const [write, { of, resolve }] of this.#writes) {
      if (of !== id) continue;
      this.#writes.delete(write);
      resolve();
    }
  }

  view({ session }: Hosted): Omit<SessionView, "events"> {
    const { key, ...facts } = session;
    const abort = (reason: string) => this.#post({ kind: "gave-up", key, reason: String(reason) });
    return { ...facts, abort };
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
      this.#say({ kind: "log", id, level, message, fields });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }

  /** Fields that cannot be sent are no reason to fail the code that logs them. */
  #say(line: Extract<FromHost, { kind: "log" }>): void {
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

// A class with getters on its prototype: one is made for every call, and most calls use little of it.
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
    const { events, definition } = this.#hosted;
    const abort = this.#abort;
    return (this.#session ??= {
      ...this.#contexts.view(this.#hosted),
      get events() {
        if (definition && (definition.options.threads ?? 1) > 1) throw noEvents(definition.name);
        // Beyond its run it would take what the next call is waiting for.
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
