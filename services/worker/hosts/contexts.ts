/** What user code is handed: views of its session and task whose acts are messages to the worker. */
import type { Failure } from "../../../schemas/index.ts";
import type { CallContext, InitContext, SessionView, WorkLog } from "../../../shared/definitions/index.ts";
import { fromFailure } from "../../../shared/errors/index.ts";
import type { Hosted } from "./host-server.ts";
import type { FromHost, LogLevel, Post, RunFacts } from "./protocol.ts";

interface Write {
  of: number;
  resolve: () => void;
  reject: (error: Error) => void;
}

export class Contexts {
  readonly #post: Post<FromHost>;
  readonly #writes = new Map<number, Write>();
  #lastWrite = 0;

  constructor(post: Post<FromHost>) {
    this.#post = post;
  }

  init(id: number, hosted: Hosted, signal: AbortSignal): InitContext {
    const { key } = hosted.session;
    return {
      session: this.#view(hosted),
      signal,
      log: this.#log(id),
      reportModel: (model) => this.#post({ kind: "model", key, model: { ...model } }),
    };
  }

  run(id: number, facts: RunFacts, hosted: Hosted, signal: AbortSignal): CallContext {
    const session: SessionView = { ...this.#view(hosted), events: hosted.events.listen(signal) };
    return {
      instanceId: facts.instanceId,
      name: facts.name,
      attempt: facts.attempt,
      workerId: hosted.session.workerId,
      signal,
      lastHeartbeat: facts.lastHeartbeat,
      heartbeat: (details) => this.#post({ kind: "heartbeat", id, details }),
      session,
      stream: { write: (chunk) => this.#write(id, chunk) },
      log: this.#log(id),
    };
  }

  wrote(write: number, error: Failure | undefined): void {
    const waiting = this.#writes.get(write);
    this.#writes.delete(write);
    if (error) waiting?.reject(fromFailure(error));
    else waiting?.resolve();
  }

  /** Nobody waits for the writes of a run that is over. */
  ended(id: number): void {
    for (const [write, { of, resolve }] of this.#writes) {
      if (of !== id) continue;
      this.#writes.delete(write);
      resolve();
    }
  }

  #view({ session }: Hosted): Omit<SessionView, "events"> {
    const { id, type, epoch, attachment, workerId, metadata, key } = session;
    const abort = (reason: string) => this.#post({ kind: "gave-up", key, reason: String(reason) });
    return { id, type, epoch, attachment, workerId, metadata, abort };
  }

  #write(id: number, chunk: unknown): Promise<void> {
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

  #log(id: number): WorkLog {
    const at = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) =>
      this.#say({ kind: "log", id, level, message, fields });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }
}
