/**
 * The end of the protocol that runs user code: keeps the states of its sessions and answers each request
 * about them exactly once, whatever the code throws.
 */
import { bareSessionType } from "../../../../schemas/index.ts";
import { type AnySession, type App, validate } from "../../../../shared/definitions/index.ts";
import { Fault, fromFailure, HoldfastError, messageOf, toFailure } from "../../../../shared/errors/index.ts";
import { writeJson } from "../../../../shared/runtime/index.ts";
import { LazyAbort } from "../../lazy-abort.ts";
import { CheckedCall, failureOf, unknownCode } from "../checked-call.ts";
import { Contexts } from "../contexts.ts";
import { EventQueue } from "../event-queue.ts";
import {
  type FromHost,
  type HostRequest,
  type Item,
  movable,
  type Post,
  type SessionFacts,
  type ToHost,
} from "./protocol.ts";

export interface Hosted {
  session: SessionFacts;
  /** Undefined for bare sessions. */
  readonly definition: AnySession | undefined;
  readonly events: EventQueue;
  state: unknown;
  /** Calls and activities that run on it now. */
  running: number;
}

export class HostServer {
  readonly #app: App;
  readonly #copies: boolean;
  readonly #checksThreadSafety: boolean;
  readonly #post: Post<FromHost>;
  readonly #contexts: Contexts;
  readonly #hosted = new Map<string, Hosted>();
  readonly #running = new Map<number, LazyAbort>();

  /**
   * `copies`: posted messages arrive as copies. `checksThreadSafety`: types that declare themselves not
   * thread-safe are checked.
   */
  constructor(
    app: App,
    post: Post<FromHost>,
    { copies = false, threads = 1, checksThreadSafety = true } = {},
  ) {
    this.#app = app;
    this.#copies = copies;
    this.#checksThreadSafety = checksThreadSafety;
    this.#post = post;
    this.#contexts = new Contexts(post, threads);
  }

  receive(message: ToHost): void {
    switch (message.kind) {
      case "request":
        void this.#answer(message.id, message.request);
        return;
      case "abort":
        this.#running.get(message.id)?.abort(fromFailure(message.reason));
        return;
      case "event":
        this.#hosted.get(message.key)?.events.push({ name: message.name, payload: message.payload });
        return;
      case "wrote":
        this.#contexts.wrote(message.write, message.error);
        return;
      case "blob-done":
        this.#contexts.blobDone(message);
        return;
      case "ping":
        this.#post({ kind: "pong", n: message.n, rssBytes: process.memoryUsage.rss() });
    }
  }

  async #answer(id: number, request: HostRequest): Promise<void> {
    const abort = new LazyAbort();
    this.#running.set(id, abort);
    try {
      this.#done(id, request, await this.#run(id, request, abort));
    } catch (error) {
      this.#post({ kind: "failed", id, error: failureOf(error) });
    } finally {
      this.#running.delete(id);
      abort.end();
      this.#contexts.ended(id);
    }
  }

  /**
   * Functions, symbols and the like cannot be sent. Each carrier refuses them in its own way; the message is
   * the same.
   */
  #done(id: number, request: HostRequest, value: unknown): void {
    const bytes = request.kind === "checkpoint" && value instanceof Uint8Array ? movable(value) : undefined;
    try {
      this.#post({ kind: "done", id, value }, bytes);
    } catch (error) {
      const what = "name" in request ? request.name : request.kind;
      const why = messageOf(error);
      const message = `${what} returned a value that cannot be sent: ${why}`;
      this.#post({ kind: "failed", id, error: { code: "not_serialisable", message, retryable: false } });
    }
  }

  async #run(id: number, request: HostRequest, abort: LazyAbort): Promise<unknown> {
    switch (request.kind) {
      case "init":
        return this.#init(id, request, abort);
      case "share": {
        const { definition, hosted, config } = this.#hostedBy(request);
        const ctx = this.#contexts.init(id, hosted, abort);
        return definition?.share?.(ctx, config, request.restore);
      }
      case "call": {
        const hosted = this.#find(request.key);
        return this.#on(hosted, () => this.#call(id, request, hosted, abort));
      }
      case "activity": {
        const hosted = this.#find(request.key);
        return this.#on(hosted, () => this.#activity(id, request, hosted, abort));
      }
      case "adopt":
        return this.#adopt(request.key, request.session);
      case "snapshot": {
        const { definition, state } = this.#find(request.key);
        return definition?.snapshot?.(state);
      }
      case "checkpoint": {
        const { definition, state } = this.#find(request.key);
        const bytes: unknown = await definition?.checkpoint?.(state);
        if (bytes instanceof Uint8Array) return bytes;
        throw new Fault("application", {
          code: "invalid_checkpoint",
          message: `checkpoint of ${definition?.name ?? bareSessionType} must return a Uint8Array`,
        });
      }
      case "shutdown":
        return this.#shutdown(id, request.key, abort);
    }
  }

  async #init(id: number, request: Extract<HostRequest, { kind: "init" }>, abort: LazyAbort): Promise<void> {
    const { session, restore } = request;
    const { definition, hosted, config } = this.#hostedBy(request);
    if (definition) {
      const before = this.#contexts.init(id, hosted, abort);
      const shared: unknown = request.shared
        ? request.shared.value
        : await definition.share?.(before, config, restore);
      const ctx = this.#contexts.init(id, hosted, abort, shared);
      hosted.state =
        restore && definition.restore
          ? await definition.restore(ctx, config, restore)
          : await definition.init(ctx, config);
    }
    this.#hosted.set(session.key, hosted);
  }

  #hostedBy({ session, config }: Pick<Extract<HostRequest, { kind: "init" }>, "session" | "config">) {
    const definition = this.#definitionOf(session.type);
    const hosted: Hosted = { session, definition, events: new EventQueue(), state: undefined, running: 0 };
    const what = `config of session type ${session.type}`;
    const checked: unknown = definition && validate(definition.config, config, "invalid_config", what);
    return { definition, hosted, config: checked };
  }

  /** Runs user code on a state, and alone if the type requires that. */
  async #on<T>(hosted: Hosted, run: () => Promise<T>): Promise<T> {
    const { definition, running } = hosted;
    if (this.#checksThreadSafety && definition?.options.threadSafe === false && running > 0) {
      throw new HoldfastError({
        code: "not_thread_safe",
        message: `session type ${definition.name} says threadSafe: false, and another call runs on its state`,
      });
    }
    hosted.running++;
    try {
      return await run();
    } finally {
      hosted.running--;
    }
  }

  async #call(
    id: number,
    request: Extract<HostRequest, { kind: "call" }>,
    hosted: Hosted,
    abort: LazyAbort,
  ): Promise<Item[]> {
    const { name } = request;
    const call = Object.hasOwn(hosted.definition?.calls ?? {}, name)
      ? hosted.definition?.calls[name]
      : undefined;
    if (!call?.run) throw unknownCode("call", name, `session type ${hosted.session.type}`);
    const checked = new CheckedCall(call, `${hosted.session.type}.${name}`);
    const ctx = this.#contexts.run(id, request.run, hosted, abort);
    if (!call.batch) {
      const value: unknown = await call.run(hosted.state, checked.parse(request.inputs[0]) as never, ctx);
      return [this.#item(() => checked.check(value))];
    }
    const batch = checked.parseAll(request.inputs);
    const { good } = batch;
    const results: unknown = good.length > 0 ? await call.run(hosted.state, good as never, ctx) : [];
    return batch.merge(
      results,
      (value): Item =>
        value instanceof Error
          ? { ok: false, error: toFailure(value) }
          : this.#item(() => checked.check(value)),
    );
  }

  async #activity(
    id: number,
    request: Extract<HostRequest, { kind: "activity" }>,
    hosted: Hosted,
    abort: LazyAbort,
  ): Promise<Item> {
    const { name } = request;
    const activity = this.#app.activities.get(name);
    if (!activity) throw unknownCode("activity", name, "this worker");
    const ctx = this.#contexts.run(id, request.run, hosted, abort);
    const input = validate(activity.input, request.input, "invalid_input", `input of ${name}`);
    const value: unknown = await activity.run(ctx, input);
    return this.#item(() => validate(activity.output, value, "invalid_output", `output of ${name}`));
  }

  #item(make: () => unknown): Item {
    try {
      const value = make();
      const plain = !this.#copies || value === null || copied.has(typeof value);
      return plain ? { ok: true, value } : { ok: true, json: writeJson(value) };
    } catch (error) {
      return { ok: false, error: toFailure(error) };
    }
  }

  #adopt(key: string, session: SessionFacts): void {
    const hosted = this.#find(key);
    this.#hosted.delete(key);
    this.#hosted.set(session.key, { ...hosted, session });
  }

  /** The state is removed before `shutdown` runs, so that it runs once however often it is requested. */
  async #shutdown(id: number, key: string, abort: LazyAbort): Promise<void> {
    const hosted = this.#hosted.get(key);
    if (!hosted) return;
    this.#hosted.delete(key);
    hosted.events.close();
    await hosted.definition?.shutdown?.(hosted.state, this.#contexts.init(id, hosted, abort));
  }

  #find(key: string): Hosted {
    const hosted = this.#hosted.get(key);
    if (hosted) return hosted;
    throw new Fault("bug", { code: "no_such_state", message: `no state of ${key} here` });
  }

  #definitionOf(type: string): AnySession | undefined {
    if (type === bareSessionType) return undefined;
    const definition = this.#app.sessions.get(type);
    if (definition) return definition;
    throw new Fault("config", { code: "unknown_session_type", message: `no session type ${type} here` });
  }
}

/** Types of values that a copy does not change. */
const copied: ReadonlySet<string> = new Set(["undefined", "boolean", "number", "string"]);
