/**
 * The client: starts orchestrations, sends them messages and reads their state, over subjects that any NATS
 * client may use.
 */
import type { MessageNames } from "../../../schemas/index.ts";
import { connectBus, Payloads, requireToken, subjects } from "../../bus/index.ts";
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
  requireKey,
  type SignalIn,
  type UpdateDefinition,
  validate,
} from "../../definitions/index.ts";
import { parseDuration, silent, systemRuntime } from "../../runtime/index.ts";
import { askMessages, askQuery } from "../instance/ask-query.ts";
import { handleOf, type InstanceHandle } from "../instance/handle.ts";
import { readStream, type StreamItem, type StreamOptions } from "../instance/instance-stream.ts";
import type { SignalOptions } from "../instance/message-id.ts";
import { outputOf, tooLate } from "../instance/outcome.ts";
import { waitForEnd } from "../instance/wait-for-end.ts";
import { KeyedCalls } from "../keyed/keyed-calls.ts";
import { type KeyedSession, type KeyedSessionHandle, keyedSessionOf } from "../keyed/keyed-session.ts";
import type { HistoryEntry, HistoryFile } from "../replaying/history-file.ts";
import { ended, notBegun, notFound, sameId, userFacing } from "../user-facing.ts";
import { whereToConnect } from "../where/index.ts";
import type {
  ClientConnectOptions,
  ClientOptions,
  ClientParts,
  KnownResultOptions,
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
import { HistoryReader } from "./history-reader.ts";
import { InboxSender } from "./inbox-sender.ts";
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
import { sendSignal } from "./send-signal.ts";
import { type SessionAccess, SessionClient } from "./session-client.ts";
import { startInstance } from "./start-instance.ts";
import { runUpdate, startUpdate } from "./updates.ts";
import { WorkerClient } from "./worker-client.ts";

/**
 * Starts, signals, queries, updates, watches and ends orchestrations of one installation.
 *
 * @example
 * ```ts
 * const client = await connect();
 * const handle = await client.start(classifyDocs, { docs: ["one", "two"] });
 * console.log(await handle.result());
 * ```
 */
export class Client {
  readonly #parts: ClientParts;
  readonly #instances: Instances;
  readonly #sender: InboxSender;
  readonly #histories: HistoryReader;
  readonly sessions: SessionClient;
  readonly workers: WorkerClient;
  readonly schedules: ScheduleClient;
  readonly pools: PoolClient;
  readonly dead: DeadLetters;
  #keyedCalls: KeyedCalls | undefined;

  /** @internal Use {@link connect}. */
  constructor({ bus, names = subjects(), runtime = systemRuntime(silent) }: ClientOptions) {
    const payloads = new Payloads(bus.blobs);
    const parts = { bus, names, runtime, payloads };
    this.#parts = parts;
    this.#instances = new Instances(bus, names, payloads, runtime);
    this.#sender = new InboxSender(parts);
    this.#histories = new HistoryReader(parts);
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
      // Options given by the caller take precedence over those found.
      const { prefix, ...connection } =
        url === undefined ? { ...whereToConnect(), ...given } : { ...given, url };
      const names = subjects(prefix);
      const bus = await connectBus({ ...connection, blobBucket: names.blobBucket, announce: silent });
      return new Client({ bus, names });
    });
  }

  /**
   * Starts an orchestration and returns a handle to the new instance. A start with the id of an existing instance
   * changes nothing and returns a handle to that instance.
   */
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
      const started = await startInstance(this.#parts, this.#sender, orchestration, input, options);
      const { id, isNew, checked } = started;
      const { clock } = this.#parts.runtime;
      // An instance that was started before may have ended before.
      return handleOf(this, id, { clock, at: isNew ? clock.monotonic() : Number.NEGATIVE_INFINITY, checked });
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
      return this.start(name, input && (await this.#parts.payloads.unwrap(input)), options);
    });
  }

  /** A handle to an instance that was started elsewhere or earlier. */
  get<O = unknown>(instanceId: string): InstanceHandle<O> {
    return handleOf<O>(this, instanceId);
  }

  /** Returns the output when the instance has ended; throws the instance's error if it failed. */
  result<O = unknown>(instanceId: string, options?: ResultOptions): Promise<O>;
  /** @internal For handles, which know that their instance exists. */
  result<O = unknown>(instanceId: string, options?: KnownResultOptions): Promise<O>;
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
   * it again at any time: the instance receives it once. Throws `instance_ended` if the instance had ended:
   * the signal is then in the dead letters.
   */
  signal<S extends AnySignal | string>(
    instanceId: string,
    signal: S,
    ...[payload, options = {}]: InputArguments<SignalIn<S>, SignalOptions>
  ): Promise<void> {
    const parts = { sender: this.#sender, instances: this.#instances, histories: this.#histories };
    return userFacing(() => sendSignal(parts, instanceId, signal, payload, options));
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
   * Names of the queries and updates that the code of an instance has handlers for, and of the signals it waits
   * for now.
   */
  messages(instanceId: string, { timeout = "10s" }: QueryOptions = {}): Promise<MessageNames> {
    return userFacing(() =>
      askMessages(this.#waitDeps(), requireToken("instance id", instanceId), {
        timeoutMs: parseDuration(timeout, "timeout"),
      }),
    );
  }

  /**
   * Changes an instance and waits for the answer of its handler. With your own id the update is applied once,
   * however often it is sent; an update that the code refuses leaves no trace.
   */
  update<I, O>(instanceId: string, update: UpdateDefinition<I, O>, ...rest: UpdateArguments<I>): Promise<O>;
  update(instanceId: string, update: string, input?: unknown, options?: UpdateOptions): Promise<unknown>;
  update(
    instanceId: string,
    update: UpdateDefinition | string,
    input?: unknown,
    options: UpdateOptions = {},
  ): Promise<unknown> {
    return runUpdate(this.#parts, this.#sender, { instanceId, update, input }, options);
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
  startUpdate(
    instanceId: string,
    update: UpdateDefinition | string,
    input?: unknown,
    options: UpdateOptions = {},
  ): Promise<UpdateHandle> {
    return startUpdate(this.#parts, this.#sender, { instanceId, update, input }, options);
  }

  /** Asks the orchestration's code to end; the code may clean up first. */
  cancel(instanceId: string, reason?: string): Promise<void> {
    return this.#control(instanceId, "cancel", reason);
  }

  /** Ends the instance at once, whatever it is doing. */
  terminate(instanceId: string, reason?: string): Promise<void> {
    return this.#control(instanceId, "terminate", reason);
  }

  /** The present status of an instance, with its input, output and custom status. */
  status(instanceId: string, options: ViewOptions = {}): Promise<InstanceView> {
    return userFacing(async () => {
      const summary = await this.#instances.find(requireToken("instance id", instanceId));
      if (!summary) throw notFound(instanceId);
      return this.#instances.view(summary, options);
    });
  }

  /** Instances, newest first. Large values are left out. */
  list(options: ListOptions = {}): Promise<InstanceView[]> {
    return userFacing(() => this.#instances.list(options));
  }

  /** All stored events of all executions. */
  history(instanceId: string): Promise<HistoryEntry[]> {
    return userFacing(() => this.#histories.entries(instanceId));
  }

  /** The history as a file that can be kept and replayed, including values that are too big for a message. */
  historyFile(instanceId: string): Promise<HistoryFile> {
    return userFacing(() => this.#histories.file(instanceId));
  }

  /**
   * Chunks that the instance's activities and calls write while they run: the stored ones, then live until
   * the instance ends.
   */
  stream(instanceId: string, options: StreamOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
    requireToken("instance id", instanceId);
    return readStream({ ...this.#parts, instances: this.#instances }, instanceId, options);
  }

  /** One session by its id, whichever instance or key it belongs to. */
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
    const parts = this.#parts;
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

  /** Closes the connection. Instances, and sessions of keys, continue. */
  async close(): Promise<void> {
    await this.#keyedCalls?.stop();
    await this.#parts.bus.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #control(instanceId: string, verb: "cancel" | "terminate", reason: string | undefined): Promise<void> {
    return userFacing(async () => {
      const summary = await this.#instances.find(requireToken("instance id", instanceId));
      if (!summary || !wasStarted(summary)) throw notFound(instanceId);
      if (isTerminal(summary.status)) throw ended(instanceId, summary.status);
      await this.#sender.control(instanceId, verb, reason);
    });
  }

  #waitDeps() {
    return { ...this.#parts, instances: this.#instances };
  }
}
