/**
 * The worker's end of the protocol: matches answers to requests, and fails all open requests when the host is
 * gone.
 */
import type { Failure, MetadataChange } from "../../../../schemas/index.ts";
import { HoldfastError, SessionLostError, toFailure } from "../../../../shared/errors/index.ts";
import type { Aborting } from "../../lazy-abort.ts";
import type { BlobRequest, FromHost, HostRequest, LogLevel, ModelFacts, Post, ToHost } from "./protocol.ts";

/** Messages of a host about itself, not about a session or a request. */
type AboutHost = { kind: "ready" | "unable" | "pong" | "host-log" | "refused" };

/** Receives the messages of a running request before it ends. */
export interface RunHooks {
  heartbeat?(details: unknown): void;
  write?(chunk: unknown): Promise<void>;
  log?(level: LogLevel, message: string, fields: Record<string, unknown> | undefined): void;
}

/** Receives the messages of a session's code about the session. */
export interface SessionHooks {
  model(model: ModelFacts): void;
  metadata(change: MetadataChange): void;
  blob(request: BlobRequest): Promise<unknown>;
  gaveUp(reason: string): void;
}

interface Open {
  hooks: RunHooks;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  /** Stops listening to the caller's signal. */
  forget: () => void;
}

export class HostClient {
  readonly #post: Post<ToHost>;
  readonly #open = new Map<number, Open>();
  readonly #sessions = new Map<string, SessionHooks>();
  #last = 0;
  #gone: Error | undefined;

  constructor(post: Post<ToHost>) {
    this.#post = post;
  }

  /**
   * An abort of the signal is passed on to the host, and the request still waits for the answer, because
   * until then the state is in use. Rejects with the error that user code threw, or with the reason why the
   * host is gone.
   */
  request(
    request: HostRequest,
    options: { signal?: Aborting; hooks?: RunHooks; transfer?: ArrayBuffer[] } = {},
  ): Promise<unknown> {
    if (this.#gone) return Promise.reject(this.#gone);
    const id = ++this.#last;
    const { signal } = options;
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#send({ kind: "abort", id, reason: toFailure(signal?.reason) });
      const forget = () => signal?.removeEventListener("abort", onAbort);
      this.#open.set(id, { hooks: options.hooks ?? {}, resolve, reject, forget });
      signal?.addEventListener("abort", onAbort, { once: true });
      try {
        this.#post({ kind: "request", id, request }, options.transfer);
        if (signal?.aborted) onAbort();
      } catch (error) {
        this.#settle(id, (open) => open.reject(asError(error)));
      }
    });
  }

  event(key: string, name: string, payload: unknown): void {
    this.#send({ kind: "event", key, name, payload });
  }

  ping(n: number): void {
    this.#send({ kind: "ping", n });
  }

  listen(key: string, hooks: SessionHooks): void {
    this.#sessions.set(key, hooks);
  }

  unlisten(key: string): void {
    this.#sessions.delete(key);
  }

  /** Handles every message of a host except those about itself. */
  receive(message: Exclude<FromHost, AboutHost>): void {
    switch (message.kind) {
      case "done":
        this.#settle(message.id, (open) => open.resolve(message.value));
        break;
      case "failed":
        this.#settle(message.id, (open) => open.reject(new HostedFailure(message.error)));
        break;
      case "heartbeat":
        this.#open.get(message.id)?.hooks.heartbeat?.(message.details);
        break;
      case "log":
        this.#open.get(message.id)?.hooks.log?.(message.level, message.message, message.fields);
        break;
      case "write":
        void this.#write(message.id, message.write, message.chunk);
        break;
      case "model":
        this.#sessions.get(message.key)?.model(message.model);
        break;
      case "metadata":
        this.#sessions.get(message.key)?.metadata(message.change);
        break;
      case "blob":
        void this.#blob(message);
        break;
      case "gave-up":
        this.#sessions.get(message.key)?.gaveUp(message.reason);
    }
  }

  /** The host is gone: no open request will be answered. */
  end(why: Error): void {
    this.#gone ??= why;
    for (const id of [...this.#open.keys()]) this.#settle(id, (open) => open.reject(why));
    this.#sessions.clear();
  }

  async #write(id: number, write: number, chunk: unknown): Promise<void> {
    try {
      await this.#open.get(id)?.hooks.write?.(chunk);
      this.#send({ kind: "wrote", write, error: undefined });
    } catch (error) {
      this.#send({ kind: "wrote", write, error: toFailure(error) });
    }
  }

  async #blob({ key, ask, request }: Extract<FromHost, { kind: "blob" }>): Promise<void> {
    try {
      const session = this.#sessions.get(key);
      if (!session) throw new SessionLostError(`the session of state ${key} is over`);
      this.#send({ kind: "blob-done", ask, value: await session.blob(request), error: undefined });
    } catch (error) {
      this.#send({ kind: "blob-done", ask, value: undefined, error: toFailure(error) });
    }
  }

  #send(message: ToHost): void {
    if (!this.#gone) this.#post(message);
  }

  #settle(id: number, act: (open: Open) => void): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    open.forget();
    act(open);
  }
}

/** An error thrown by user code in a host, rebuilt so that `toFailure` gives back exactly what was sent. */
export class HostedFailure extends Error {
  override readonly name = "HostedFailure";
  readonly code: string;
  readonly retryable: boolean;
  readonly details: unknown;

  constructor(failure: Failure) {
    super(failure.message, failure.cause ? { cause: new HostedFailure(failure.cause) } : undefined);
    this.code = failure.code;
    this.retryable = failure.retryable;
    this.details = failure.details;
    this.stack = failure.stack ?? "";
  }
}

const asError = (error: unknown): Error => {
  if (error instanceof Error && error.name === "DataCloneError") {
    return new HoldfastError({ code: "not_serialisable", message: error.message });
  }
  return error instanceof Error ? error : new Error(String(error));
};
