/** A session that belongs to a key, for clients. */
import { StreamChunk } from "../../../schemas/index.ts";
import { decode, requireToken, type StoredMessage } from "../../bus/index.ts";
import {
  type AnySession,
  type Call,
  type CallsOf,
  type ConfigOf,
  configDigest,
  type InputArguments,
  type KeyOptions,
  keyedSessionId,
  keyedSpec,
  keyOptionNames,
  refuseUnknownOptions,
  requireKey,
  validate,
} from "../../definitions/index.ts";
import { HoldfastError, TimeoutError } from "../../errors/index.ts";
import { type Duration, parseDuration } from "../../runtime/index.ts";
import type { SessionClient, SessionDescription } from "../client/session-client.ts";
import { userFacing } from "../user-facing.ts";
import type { KeyedCalls, KeyedParts, KeyedTarget } from "./keyed-calls.ts";

/** How one call of a keyed session is made. */
export interface KeyedCallOptions {
  /** Rejects with a TimeoutError after this long, and cancels the call. */
  timeout?: Duration | undefined;
  /** Aborting it cancels the call; the session stays open. */
  signal?: AbortSignal | undefined;
}

/** The chunks that a call writes with `ctx.stream.write` while it runs, and its result. Iterate once. */
export interface CallStream<O = unknown> extends AsyncIterable<unknown> {
  readonly result: Promise<O>;
}

/** The session of a key: its typed calls and its state. */
export interface KeyedSessionHandle {
  readonly type: string;
  readonly key: string;
  /** Id of the session, derived from type and key. */
  readonly id: string;
  /** Opens the session if it is not open, and waits until a worker holds it. Calls do this by themselves. */
  open(options?: KeyedCallOptions): Promise<void>;
  /** Makes a call by its name, for a type that this program does not import. */
  call(name: string, input?: unknown, options?: KeyedCallOptions): Promise<unknown>;
  /** Makes a call and yields the chunks that it writes. */
  stream(name: string, input?: unknown, options?: KeyedCallOptions): CallStream;
  /** The session's record, its holder's latest report, and where it is and why. */
  describe(): Promise<SessionDescription>;
  /** Closes the session for every client and cancels its open calls. The next call opens it anew. */
  close(reason?: string): Promise<{ closed: boolean }>;
}

/** The handle with the calls of the session's type, except calls named like the handle's own methods. */
export type KeyedSession<D extends AnySession> = KeyedSessionHandle & {
  readonly [K in Exclude<keyof CallsOf<D>, keyof KeyedSessionHandle>]: CallsOf<D>[K] extends Call<
    infer _S,
    infer I,
    infer O
  >
    ? (...rest: InputArguments<I, KeyedCallOptions>) => Promise<O>
    : never;
};

interface KeyedSessionParts extends KeyedParts {
  readonly sessions: SessionClient;
  readonly calls: KeyedCalls;
}

export function keyedSessionOf<D extends AnySession>(
  parts: KeyedSessionParts,
  type: D | string,
  options: KeyOptions<ConfigOf<D>>,
): KeyedSession<D> {
  const handle = new Handle(parts, type, options);
  const calls = typeof type === "string" ? [] : Object.keys(type.calls).filter((name) => !(name in handle));
  const typed = calls.map((name) => [
    name,
    (input: unknown, one?: KeyedCallOptions) => handle.call(name, input, one),
  ]);
  return Object.assign(handle, Object.fromEntries(typed)) as unknown as KeyedSession<D>;
}

class Handle implements KeyedSessionHandle {
  readonly type: string;
  readonly key: string;
  readonly id: string;
  readonly #parts: KeyedSessionParts;
  readonly #definition: AnySession | undefined;
  readonly #target: KeyedTarget;

  constructor(parts: KeyedSessionParts, type: AnySession | string, options: KeyOptions) {
    const name = typeof type === "string" ? type : type.name;
    refuseUnknownOptions(`session("${name}")`, options, keyOptionNames);
    this.#parts = parts;
    this.#definition = typeof type === "string" ? undefined : type;
    this.type = requireToken("session type", name);
    this.key = requireKey(options.key);
    const { config, onLost, ttl } = options;
    if (this.#definition) keyedSpec(this.#definition, options);
    this.id = keyedSessionId(this.type, this.key);
    this.#target = {
      type: this.type,
      key: this.key,
      sessionId: this.id,
      configDigest: configDigest(config),
      open: {
        ...(config !== undefined && { config }),
        ...(onLost !== undefined && { onLost }),
        ...(ttl !== undefined && { ttl }),
      },
    };
  }

  open({ timeout, signal }: KeyedCallOptions = {}): Promise<void> {
    return userFacing(async () => {
      await this.#parts.calls.open(this.#target, this.#deadline(timeout), signal);
    });
  }

  call(name: string, input?: unknown, options: KeyedCallOptions = {}): Promise<unknown> {
    return this.#call(name, input, options);
  }

  stream(name: string, input?: unknown, options: KeyedCallOptions = {}): CallStream {
    const { bus, names, payloads } = this.#parts;
    const chunks = new Chunks();
    let subject = "";
    const result = this.#call(name, input, options, async ({ caller, of }) => {
      subject = names.stream(caller, 1, of);
      const onMessage = (message: StoredMessage) => chunks.add(message);
      chunks.follows ??= await bus.tail(names.streamsStream, subject, { existing: true, onMessage });
    });
    // The result may overtake chunks written before it: those are read from the stream.
    const rest = async () => {
      const stored = subject === "" ? [] : await bus.read(names.streamsStream, subject, chunks.lastSeq + 1);
      for (const message of stored ?? []) chunks.add(message);
    };
    void result
      .catch(() => undefined)
      .then(rest)
      .catch(() => undefined)
      .then(() => chunks.end());
    return {
      result,
      async *[Symbol.asyncIterator]() {
        for await (const { chunk } of chunks.read()) yield await payloads.unwrap(chunk);
        await result; // The call's error ends the stream.
      },
    };
  }

  describe(): Promise<SessionDescription> {
    return this.#parts.sessions.describe(this.id);
  }

  close(reason?: string): Promise<{ closed: boolean }> {
    return this.#parts.sessions.closeKey(this.type, this.key, reason);
  }

  #call(
    name: string,
    input: unknown,
    { timeout, signal }: KeyedCallOptions,
    onAttempt?: (where: { caller: string; of: number }) => Promise<void>,
  ): Promise<unknown> {
    return userFacing(async () => {
      const call = this.#check(name, input);
      const { clock } = this.#parts.runtime;
      const deadline = this.#deadline(timeout);
      const limit = new AbortController();
      const stop = () => limit.abort(signal?.reason);
      if (signal?.aborted) stop();
      signal?.addEventListener("abort", stop, { once: true });
      const late = Number.isFinite(deadline)
        ? clock.after(deadline - clock.monotonic(), () => limit.abort(this.#tooLate(name, timeout)))
        : undefined;
      try {
        const options = { deadline, signal: limit.signal, onAttempt };
        const output = await this.#parts.calls.call(this.#target, name, input, options);
        return validate(call?.output, output, "invalid_output", `output of ${this.type}.${name}`);
      } finally {
        late?.cancel();
        signal?.removeEventListener("abort", stop);
      }
    });
  }

  /**
   * Checks the input if the definition is known; otherwise an orchestrator or the holder reports what is
   * wrong.
   */
  #check(name: string, input: unknown) {
    const definition = this.#definition;
    if (!definition) return void requireToken("call", name);
    const call = Object.hasOwn(definition.calls, name) ? definition.calls[name] : undefined;
    if (!call) {
      const names = Object.keys(definition.calls).sort().join(", ") || "none";
      throw new HoldfastError({
        code: "unknown_call",
        message: `session "${this.type}" has no call ${JSON.stringify(name)}; there are: ${names}`,
      });
    }
    validate(call.input, input, "invalid_input", `input of ${this.type}.${name}`);
    return call;
  }

  #deadline(timeout: Duration | undefined): number {
    if (timeout === undefined) return Number.POSITIVE_INFINITY;
    return this.#parts.runtime.clock.monotonic() + parseDuration(timeout, "timeout");
  }

  #tooLate(name: string, timeout: Duration | undefined): TimeoutError {
    return new TimeoutError({
      code: "timeout",
      message: `${this.type}.${name} of key "${this.key}" did not answer within ${String(timeout)} and was cancelled`,
      retryable: true,
    });
  }
}

/** The chunks in order; a call that runs again writes anew. */
class Chunks {
  follows: { stop(): Promise<void> } | undefined;
  readonly #waiting: StreamChunk[] = [];
  lastSeq = 0;
  #over = false;
  #wake: () => void = () => undefined;

  add({ body, seq }: StoredMessage): void {
    if (seq <= this.lastSeq || this.#over) return;
    this.lastSeq = seq;
    const chunk = decode(StreamChunk, body);
    if (chunk.kind === "ok") this.#waiting.push(chunk.value);
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  async *read(): AsyncGenerator<StreamChunk, void, undefined> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next) yield next;
        else if (this.#over) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      await this.follows?.stop();
    }
  }
}
