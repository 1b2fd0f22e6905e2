/**
 * The client: starts orchestrations, sends them messages and reads their state, over subjects that any NATS
 * client may use.
 */

import { type Commit, messageIdHeader, type Payload } from "../../../schemas/index.ts";
import {
  type Bus,
  connectBus,
  encode,
  type Headers,
  headerNames,
  inInbox,
  installedNames,
  madeSignalId,
  madeUpdateId,
  Payloads,
  publishOrThrow,
  requireToken,
  type Subjects,
  subjects,
} from "../../bus/index.ts";
import {
  type AnySession,
  type AnySignal,
  type ConfigOf,
  type ConfiguredArguments,
  type InputArguments,
  type KeyOptions,
  type OrchestrationDefinition,
  type PoolOptions,
  type QueryDefinition,
  refuseUnknownOptions,
  requireKey,
  type SignalIn,
  type UpdateDefinition,
  validate,
} from "../../definitions/index.ts";
import { HistoryStore } from "../../history/index.ts";
import { parseDuration, type Runtime, silent, systemRuntime, token } from "../../runtime/index.ts";
import { activeTraceparent } from "../../runtime/trace.ts";
import { askQuery } from "../instance/ask-query.ts";
import { flowHeaders, parseDelay, parseFlow } from "../instance/flow-start.ts";
import { handleOf, type InstanceHandle } from "../instance/handle.ts";
import { readStream, type StreamItem, type StreamOptions } from "../instance/instance-stream.ts";
import { requireMessageId, type SignalOptions } from "../instance/message-id.ts";
import { outputOf, tooLate } from "../instance/outcome.ts";
import { requireAnswer, sendUpdate } from "../instance/send-update.ts";
import { waitForEnd } from "../instance/wait-for-end.ts";
import { KeyedCalls } from "../keyed/keyed-calls.ts";
import { type KeyedSession, type KeyedSessionHandle, keyedSessionOf } from "../keyed/keyed-session.ts";
import {
  entriesOf,
  type HistoryEntry,
  type HistoryFile,
  historyFile,
  storedValues,
} from "../replaying/history-file.ts";
import { ended, notBegun, notFound, sameId, userFacing } from "../user-facing.ts";
import { whereToConnect } from "../where/index.ts";
import type {
  ClientConnectOptions,
  ClientOptions,
  QueryArguments,
  QueryOptions,
  ResultOptions,
  StartOptions,
  UpdateArguments,
  UpdateHandle,
  UpdateOptions,
  WaitForEndOptions,
} from "./client-options.ts";
import { DeadLetters } from "./dead-letters.ts";
import {
  Instances,
  type InstanceView,
  isTerminal,
  type ListOptions,
  type ViewOptions,
  wasStarted,
} from "./instances.ts";
import { PoolClient, type PoolHandle, type PoolOf } from "./pool-client.ts";
import { ScheduleClient } from "./schedule-client.ts";
import { type SessionAccess, SessionClient } from "./session-client.ts";
import { WorkerClient } from "./worker-client.ts";

/** Options for a handle, which knows that its instance exists. */
type KnownResultOptions = ResultOptions & { known?: boolean; justStarted?: boolean };

interface SendOptions {
  headers?: Headers | undefined;
  /** Sent later, by a durable schedule of the instance. */
  delayed?: { at: number; id: string } | undefined;
  /** The receiving instance, if other clients can guess the message id. */
  guessableFor?: string | undefined;
}

const blobHeader = headerNames.blob;

/**
 * Starts, signals, asks, watches and ends orchestrations of one installation.
 *
 * @example
 * ```ts
 * const client = await connect();
 * const handle = await client.start(classifyDocs, { docs: ["one", "two"] });
 * console.log(await handle.result());
 * ```
 */
export class Client {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #runtime: Runtime;
  readonly #payloads: Payloads;
  readonly #instances: Instances;
  readonly sessions: SessionClient;
  readonly workers: WorkerClient;
  readonly schedules: ScheduleClient;
  readonly pools: PoolClient;
  readonly dead: DeadLetters;
  #history: Promise<HistoryStore> | undefined;
  #keyedCalls: KeyedCalls | undefined;

  /** @internal Use {@link connect}. */
  constructor({ bus, names = subjects(), runtime = systemRuntime(silent) }: ClientOptions) {
    this.#bus = bus;
    this.#names = names;
    this.#runtime = runtime;
    this.#payloads = new Payloads(bus.blobs);
    this.#instances = new Instances(bus, names, this.#payloads, runtime);
    const parts = { bus, names, runtime, payloads: this.#payloads };
    this.sessions = new SessionClient(parts);
    this.workers = new WorkerClient(parts);
    this.schedules = new ScheduleClient(parts, this.#instances, (name, input, options) =>
      this.start(name, input, options),
    );
    this.pools = new PoolClient(parts, {
      start: (name, input) => this.start(name, input),
      list: (name) => this.list({ name, limit: 10_000 }),
      cancel: (instanceId, reason) => this.cancel(instanceId, reason),
    });
    this.dead = new DeadLetters(parts);
  }

  /**
   * Without an address: uses `NATS_URL`, the `holdfast dev` that runs in this folder, or the current context,
   * in this order.
   */
  static connect(options: ClientConnectOptions = {}): Promise<Client> {
    return userFacing(async () => {
      const { url, ...given } = options;
      const { prefix, ...connection } = url === undefined ? found(given) : { ...given, url };
      const names = subjects(prefix);
      const bus = await connectBus({ ...connection, blobBucket: names.blobBucket, announce: silent });
      return new Client({ bus, names });
    });
  }

  start<I, O>(
    orchestration: OrchestrationDefinition<I, O>,
    ...rest: InputArguments<I, StartOptions>
  ): Promise<InstanceHandle<O>>;
  start(orchestration: string, input?: unknown, options?: StartOptions): Promise<InstanceHandle>;
  start(
    orchestration: OrchestrationDefinition | string,
    input?: unknown,
    options: StartOptions = {},
  ): Promise<InstanceHandle> {
    return userFacing(async () => {
      const name = typeof orchestration === "string" ? orchestration : orchestration.name;
      refuseUnknownOptions(`start of "${name}"`, options, {
        id: true,
        inputBlob: true,
        delay: true,
        flow: true,
      });
      requireToken("orchestration name", name);
      const id = options.id ?? `${name.slice(0, 100)}-${token(this.#runtime.random)}`;
      requireToken("instance id", id);
      const definition = typeof orchestration === "string" ? undefined : orchestration;
      const stored = options.inputBlob;
      if (!stored) validate(definition?.input, input, "invalid_input", `input of ${name}`);
      const { delay } = options;
      const at = delay === undefined ? undefined : this.#runtime.clock.now() + parseDelay(delay);
      const flow = options.flow && parseFlow(options.flow);
      const sent = await this.#send(
        this.#names.start(id, name),
        `start-${id}`,
        stored ? { blob: stored } : await this.#wrap(input, id),
        {
          headers: flow ? { ...traceHeaders(), ...flowHeaders(flow) } : traceHeaders(),
          delayed: at === undefined ? undefined : { at, id },
          guessableFor: id,
        },
      );
      const { clock } = this.#runtime;
      return handleOf(this, id, {
        clock,
        // An instance that was started before may have ended before.
        at: sent.duplicate || flow || at !== undefined ? Number.NEGATIVE_INFINITY : clock.monotonic(),
        // Another version of the code may serve the instance, and return a value that these types do not
        // allow.
        checked: (output) => validate(definition?.output, output, "invalid_output", `output of ${name}`),
      });
    });
  }

  /**
   * Starts the same orchestration with the same input under another id, whatever the state of this instance,
   * which does not change.
   */
  startAgain(instanceId: string, options: Pick<StartOptions, "id"> = {}): Promise<InstanceHandle> {
    return userFacing(async () => {
      const summary = await this.#instances.find(requireToken("instance id", instanceId));
      if (!summary || !wasStarted(summary)) throw notFound(instanceId);
      const { name, input, status } = summary;
      if (name === undefined || status === "pending") throw notBegun(instanceId);
      if (options.id === instanceId) throw sameId(instanceId);
      // A big input is stored again for the new instance: a blob belongs to one instance and is deleted with
      // it.
      return this.start(name, input && (await this.#payloads.unwrap(input)), options);
    });
  }

  /** A handle to an instance that was started elsewhere or earlier. */
  get<O = unknown>(instanceId: string): InstanceHandle<O> {
    return handleOf<O>(this, instanceId);
  }

  /** Returns the output when the instance has ended; throws the instance's error if it failed. */
  result<O = unknown>(instanceId: string, options: KnownResultOptions = {}): Promise<O> {
    return userFacing(async () => {
      const { timeout, signal, known = false, justStarted } = options;
      const timeoutMs = timeout === undefined ? Number.POSITIVE_INFINITY : parseDuration(timeout, "timeout");
      const waited = await waitForEnd(this.#waitDeps(), requireToken("instance id", instanceId), {
        timeoutMs,
        signal,
        known,
        justStarted,
      });
      if (waited.kind === "unknown") throw notFound(instanceId);
      if (waited.kind === "running") throw tooLate(instanceId, waited.summary, signal);
      return outputOf(await this.#instances.view(waited.summary)) as O;
    });
  }

  /**
   * Waits for the end, at most this long, and returns the latest known state. Undefined if there is no such
   * instance.
   */
  waitForEnd(
    instanceId: string,
    timeoutMs: number,
    { signal, known = false, untilParked, ...view }: WaitForEndOptions = {},
  ): Promise<InstanceView | undefined> {
    return userFacing(async () => {
      const waited = await waitForEnd(this.#waitDeps(), requireToken("instance id", instanceId), {
        timeoutMs,
        signal,
        known,
        untilParked,
      });
      if (waited.kind === "unknown") return undefined;
      const summary = waited.summary ?? (await this.#instances.find(instanceId));
      return summary && this.#instances.view(summary, view);
    });
  }

  /**
   * A signal sent before the start is kept for the instance, in order. With your own `messageId` you may send
   * it again at any time: the instance receives it once.
   */
  signal<S extends AnySignal | string>(
    instanceId: string,
    signal: S,
    ...[payload, options = {}]: InputArguments<SignalIn<S>, SignalOptions>
  ): Promise<void> {
    return userFacing(async () => {
      requireToken("instance id", instanceId);
      const name = requireToken("signal name", typeof signal === "string" ? signal : signal.name);
      if (typeof signal !== "string")
        validate(signal.payload, payload, "invalid_signal", `payload of signal "${name}"`);
      const summary = await this.#instances.summary(instanceId);
      if (summary && isTerminal(summary.status)) throw ended(instanceId, summary.status);
      const { messageId } = options;
      if (messageId !== undefined) requireMessageId(messageId);
      // The server compares message ids across all subjects of the stream, so the instance id is part of the
      // message id.
      const msgId = `${madeSignalId(instanceId)}${messageId ?? token(this.#runtime.random)}`;
      const value = await this.#wrap(payload, instanceId);
      const headers = messageId === undefined ? undefined : { [messageIdHeader]: messageId };
      const guessableFor = messageId === undefined ? undefined : instanceId;
      await this.#send(this.#names.signal(instanceId, name), msgId, value, { headers, guessableFor });
    });
  }

  /**
   * Asks the code of a running or finished instance; changes nothing. The owner answers from memory if it has
   * the instance loaded, by replay otherwise.
   */
  query<I, O>(instanceId: string, query: QueryDefinition<I, O>, ...rest: QueryArguments<I>): Promise<O>;
  query(instanceId: string, query: string, input?: unknown, options?: QueryOptions): Promise<unknown>;
  query(
    instanceId: string,
    query: QueryDefinition | string,
    input?: unknown,
    { timeout = "10s" }: QueryOptions = {},
  ): Promise<unknown> {
    return userFacing(async () => {
      const definition = typeof query === "string" ? undefined : query;
      const name = requireToken("query name", typeof query === "string" ? query : query.name);
      validate(definition?.input, input, "invalid_input", `input of query "${name}"`);
      const answer = await askQuery(this.#waitDeps(), requireToken("instance id", instanceId), name, input, {
        timeoutMs: parseDuration(timeout, "timeout"),
      });
      return validate(definition?.output, answer, "invalid_output", `answer of query "${name}"`);
    });
  }

  /**
   * Changes an instance and waits for the answer of its handler. With your own id the update is applied once,
   * however often it is sent; an update that the code refuses leaves no trace.
   */
  update<I, O>(instanceId: string, update: UpdateDefinition<I, O>, ...rest: UpdateArguments<I>): Promise<O>;
  update(instanceId: string, update: string, input?: unknown, options?: UpdateOptions): Promise<unknown>;
  async update(
    instanceId: string,
    update: UpdateDefinition | string,
    input?: unknown,
    options: UpdateOptions = {},
  ): Promise<unknown> {
    return (await this.#update(instanceId, update, input, options, "completed")).answer;
  }

  /**
   * Like `update`, but waits only until the update is accepted; `result` of the handle waits for the answer.
   */
  startUpdate<I, O>(
    instanceId: string,
    update: UpdateDefinition<I, O>,
    ...rest: UpdateArguments<I>
  ): Promise<UpdateHandle<O>>;
  startUpdate(
    instanceId: string,
    update: string,
    input?: unknown,
    options?: UpdateOptions,
  ): Promise<UpdateHandle>;
  async startUpdate(
    instanceId: string,
    update: UpdateDefinition | string,
    input?: unknown,
    options: UpdateOptions = {},
  ): Promise<UpdateHandle> {
    const { updateId, answer, over } = await this.#update(instanceId, update, input, options, "accepted");
    const again = { ...options, id: updateId };
    const ask = async (more: Omit<UpdateOptions, "id">) =>
      (await this.#update(instanceId, update, input, { ...again, ...more }, "completed")).answer;
    return { updateId, result: async (more = {}) => (over ? answer : ask(more)) };
  }

  #update(
    instanceId: string,
    update: UpdateDefinition | string,
    input: unknown,
    { id, timeout = "30s", signal }: UpdateOptions,
    waitFor: "accepted" | "completed",
  ): Promise<{ updateId: string; answer: unknown; over: boolean }> {
    return userFacing(async () => {
      const definition = typeof update === "string" ? undefined : update;
      const name = requireToken("update name", typeof update === "string" ? update : update.name);
      requireToken("instance id", instanceId);
      const updateId = requireToken("update id", id ?? `${madeUpdateId}${token(this.#runtime.random)}`);
      const timeoutMs = parseDuration(timeout, "timeout");
      validate(definition?.input, input, "invalid_input", `input of update "${name}"`);
      const payload = await this.#wrap(input, instanceId);
      const request = { instanceId, name, updateId, payload, waitFor, timeoutMs, signal };
      const answered = await sendUpdate(this.#waitDeps(), request);
      const stored = requireAnswer(answered);
      const value = stored && (await this.#payloads.unwrap(stored));
      const over = answered.status === "completed";
      return {
        updateId,
        over,
        answer: over
          ? validate(definition?.output, value, "invalid_output", `answer of update "${name}"`)
          : undefined,
      };
    });
  }

  /** Asks the orchestration's code to end; the code may clean up first. */
  cancel(instanceId: string, reason?: string): Promise<void> {
    return this.#control(instanceId, "cancel", reason);
  }

  /** Ends the instance at once, whatever it is doing. */
  terminate(instanceId: string, reason?: string): Promise<void> {
    return this.#control(instanceId, "terminate", reason);
  }

  status(instanceId: string, options: ViewOptions = {}): Promise<InstanceView> {
    return userFacing(async () => {
      const summary = await this.#instances.find(requireToken("instance id", instanceId));
      if (!summary) throw notFound(instanceId);
      return this.#instances.view(summary, options);
    });
  }

  list(options: ListOptions = {}): Promise<InstanceView[]> {
    return userFacing(() => this.#instances.list(options));
  }

  /** All stored events of all executions. */
  history(instanceId: string): Promise<HistoryEntry[]> {
    return userFacing(async () => entriesOf(await this.#commits(instanceId)));
  }

  /** The history as a file that can be kept and replayed, including values that are too big for a message. */
  historyFile(instanceId: string): Promise<HistoryFile> {
    return userFacing(async () => {
      const commits = await this.#commits(instanceId);
      return historyFile(instanceId, commits, await storedValues(commits, this.#payloads));
    });
  }

  /**
   * Chunks that the instance's activities and calls write while they run: the stored ones, then live until
   * the instance ends.
   */
  stream(instanceId: string, options: StreamOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
    requireToken("instance id", instanceId);
    const bus = this.#bus;
    const parts = { bus, names: this.#names, runtime: this.#runtime, payloads: this.#payloads };
    return readStream({ ...parts, instances: this.#instances }, instanceId, options);
  }

  session(sessionId: string): SessionAccess;
  /**
   * The session of a key: every client gets the same one. The first call opens it; nothing is sent before.
   */
  session<D extends AnySession>(type: D, options: KeyOptions<ConfigOf<D>>): KeyedSession<D>;
  session(type: string, options: KeyOptions): KeyedSessionHandle;
  session(
    type: AnySession | string,
    options?: KeyOptions,
  ): SessionAccess | KeyedSession<AnySession> | KeyedSessionHandle {
    if (options === undefined)
      return this.sessions.access(typeof type === "string" ? type : requireKey(undefined));
    const parts = { bus: this.#bus, names: this.#names, runtime: this.#runtime, payloads: this.#payloads };
    this.#keyedCalls ??= new KeyedCalls(parts);
    return keyedSessionOf({ ...parts, sessions: this.sessions, calls: this.#keyedCalls }, type, options);
  }

  /** A pool, by the same options as `ctx.usePool`: a free member takes each call. */
  pool<D extends AnySession>(
    type: D,
    ...rest: ConfiguredArguments<ConfigOf<D>, PoolOptions<ConfigOf<D>>>
  ): PoolOf<D>;
  pool(type: string, options?: PoolOptions): PoolHandle;
  pool(type: AnySession | string, options: PoolOptions = {}): PoolOf<AnySession> | PoolHandle {
    return this.pools.of(type, options);
  }

  async close(): Promise<void> {
    await this.#keyedCalls?.stop();
    await this.#bus.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #commits(instanceId: string): Promise<Commit[]> {
    requireToken("instance id", instanceId);
    const commits = await (await this.#historyStore()).readAll(instanceId);
    if (!commits) throw notFound(instanceId);
    return commits;
  }

  #control(instanceId: string, verb: "cancel" | "terminate", reason: string | undefined): Promise<void> {
    return userFacing(async () => {
      const summary = await this.#instances.find(requireToken("instance id", instanceId));
      if (!summary || !wasStarted(summary)) throw notFound(instanceId);
      if (isTerminal(summary.status)) throw ended(instanceId, summary.status);
      await publishOrThrow(this.#bus, {
        subject: this.#names.verb(instanceId, verb),
        body: encode(reason === undefined ? {} : { reason }),
        msgId: `${verb}-${instanceId}-${token(this.#runtime.random)}`,
      });
    });
  }

  async #wrap(value: unknown, owner: string): Promise<Payload | undefined> {
    return value === undefined ? undefined : this.#payloads.wrap(value, owner);
  }

  /**
   * The body is the value itself; without a value the body is empty. A big value is in the object store and a
   * header refers to it.
   */
  async #send(
    subject: string,
    msgId: string,
    payload: Payload | undefined,
    { headers, delayed, guessableFor }: SendOptions = {},
  ): Promise<{ duplicate: boolean }> {
    const names = this.#names;
    // A delayed message needs no look-up: only the engine writes to the stream of schedules.
    const original =
      delayed || guessableFor === undefined
        ? undefined
        : { ...inInbox(names, guessableFor), random: this.#runtime.random };
    const way = delayed ? await this.#delayed(subject, delayed) : { subject };
    if (payload && "json" in payload)
      return publishOrThrow(this.#bus, { ...way, msgId, body: encode(payload.json), headers }, original);
    const blob = payload && { [blobHeader]: JSON.stringify(payload.blob) };
    return publishOrThrow(
      this.#bus,
      { ...way, msgId, body: new Uint8Array(), headers: blob ? { ...headers, ...blob } : headers },
      original,
    );
  }

  async #delayed(subject: string, { at, id }: { at: number; id: string }) {
    // A client that may not look at streams belongs to an installation with roles, which is a new one.
    const names = await installedNames(this.#bus, this.#names).catch(() => this.#names);
    const schedule = { at, target: names.fired(subject), keptMs: names.firedKeptMs };
    return { subject: names.delayedStart(id), schedule };
  }

  #waitDeps() {
    return { bus: this.#bus, names: this.#names, runtime: this.#runtime, instances: this.#instances };
  }

  #historyStore(): Promise<HistoryStore> {
    this.#history ??= this.#openHistory().catch((error: unknown) => {
      this.#history = undefined; // The next call tries again.
      throw error;
    });
    return this.#history;
  }

  /**
   * Read-only. The number of shared history streams is read from the server, so clients need no setting for
   * it.
   */
  async #openHistory(): Promise<HistoryStore> {
    const bus = this.#bus;
    const names = this.#names;
    const shards = (await bus.streamNames(names.sharedHistories)).length;
    const runtime = this.#runtime;
    const layout = "shared" as const;
    return new HistoryStore({ bus, names, layout, maxOwnStreams: 0, shards, replicas: 1, runtime });
  }
}

/** Connects to the installation at `url`, or to the one that is found (see `Client.connect`). */
export const connect = (options: ClientConnectOptions = {}): Promise<Client> => Client.connect(options);

/** Options given by the caller take precedence over those found. */
const found = (given: Omit<ClientConnectOptions, "url">) => ({ ...whereToConnect(), ...given });

/** The instance continues the caller's trace, if the caller has one. */
function traceHeaders(): Headers | undefined {
  const traceparent = activeTraceparent();
  return traceparent === undefined ? undefined : { traceparent };
}
