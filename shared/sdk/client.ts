/** The way in: start orchestrations, talk to them, ask about them. Everything goes over subjects any client may use. */
import {
  type BlobRef,
  type Commit,
  type FlowOptions,
  messageIdHeader,
  type Payload,
} from "../../schemas/index.ts";
import {
  type Bus,
  type BusOptions,
  connectBus,
  encode,
  type Headers,
  Payloads,
  requireToken,
  type Subjects,
  subjects,
} from "../bus/index.ts";
import {
  type AnySignal,
  type InputArguments,
  type OrchestrationDefinition,
  type QueryDefinition,
  refuseUnknownOptions,
  type SignalIn,
  type UpdateDefinition,
  validate,
} from "../definitions/index.ts";
import { HoldfastError } from "../errors/index.ts";
import { HistoryStore } from "../history/index.ts";
import {
  type Duration,
  parseDuration,
  type Runtime,
  silent,
  systemRuntime,
  token,
} from "../runtime/index.ts";
import { activeTraceparent } from "../runtime/trace.ts";
import { askQuery } from "./ask-query.ts";
import { DeadLetters } from "./dead-letters.ts";
import { type FlowTarget, flowTarget, parseDelay } from "./flow-start.ts";
import { handleOf, type InstanceHandle } from "./handle.ts";
import { entriesOf, type HistoryEntry, type HistoryFile, historyFile, storedValues } from "./history-file.ts";
import { readStream, type StreamItem, type StreamOptions } from "./instance-stream.ts";
import {
  Instances,
  type InstanceView,
  isTerminal,
  type ListOptions,
  type ViewOptions,
  wasStarted,
} from "./instances.ts";
import { requireMessageId, type SignalOptions } from "./message-id.ts";
import { outputOf, tooLate } from "./outcome.ts";
import { publishSurely } from "./publish-surely.ts";
import { ScheduleClient } from "./schedule-client.ts";
import { requireAnswer, sendUpdate } from "./send-update.ts";
import { type SessionAccess, SessionClient } from "./session-client.ts";
import { ended, notBegun, notFound, sameId, userFacing } from "./user-facing.ts";
import { waitForEnd } from "./wait-for-end.ts";
import { whereToConnect } from "./where/where-to-connect.ts";
import { WorkerClient } from "./worker-client.ts";

/** @internal What the services make a client of. */
export interface ClientOptions {
  bus: Bus;
  names?: Subjects;
  runtime?: Runtime;
}

export type ClientConnectOptions = Omit<BusOptions, "announce" | "blobBucket" | "url"> & {
  /** Address of a NATS server, or of several of one cluster. Found where absent. */
  url?: BusOptions["url"];
  /** `HOLDFAST_PREFIX` of the installation. */
  prefix?: string;
};

export interface StartOptions {
  /** Chosen by you: the same id again changes nothing. Made for you where absent. */
  id?: string | undefined;
  /** Not before so long from now. */
  delay?: Duration | undefined;
  /** Limits by key: how many at a time, how often, which of several. */
  flow?: FlowOptions | undefined;
  /** Where the input lies in the object store already, instead of an input. */
  inputBlob?: BlobRef | undefined;
}

export interface QueryOptions {
  /** Rejects with `query_timeout` after so long. Default 10 s. */
  timeout?: Duration | undefined;
}

export type QueryArguments<I> = InputArguments<I, QueryOptions>;

export interface UpdateOptions {
  /** Chosen by you: the same id again changes nothing and gives the same answer. Made for you where absent. */
  id?: string | undefined;
  /** Rejects with `update_timeout` after so long; it may be applied all the same. Default 30 s. */
  timeout?: Duration | undefined;
  signal?: AbortSignal | undefined;
}

export type UpdateArguments<I> = InputArguments<I, UpdateOptions>;

/** An update that was accepted. */
export interface UpdateHandle<O = unknown> {
  readonly updateId: string;
  /** The answer of its handler; its error, thrown, where it failed. */
  result(options?: Omit<UpdateOptions, "id">): Promise<O>;
}

export interface ResultOptions {
  /** Rejects with `result_timeout` after so long; the instance goes on. */
  timeout?: Duration | undefined;
  signal?: AbortSignal | undefined;
}

export interface WaitForEndOptions extends ViewOptions {
  signal?: AbortSignal | undefined;
  /** There is such an instance, even if nothing is to be seen of it yet. */
  known?: boolean | undefined;
  /** Also return when it is parked and stays so for a moment. */
  untilParked?: boolean | undefined;
}

/** What a handle knows of its instance. */
type KnownResultOptions = ResultOptions & { known?: boolean; justStarted?: boolean };

interface SendOptions {
  headers?: Headers | undefined;
  /** By a durable schedule of the instance's. */
  delayed?: { at: number; id: string } | undefined;
}

const blobHeader = "Holdfast-Blob";

export class Client {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #runtime: Runtime;
  readonly #payloads: Payloads;
  readonly #instances: Instances;
  readonly sessions: SessionClient;
  readonly workers: WorkerClient;
  readonly schedules: ScheduleClient;
  readonly dead: DeadLetters;
  #history: Promise<HistoryStore> | undefined;
  /** Keepers of flow control that are started for sure. */
  readonly #keepers = new Set<string>();

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
    this.dead = new DeadLetters(parts);
  }

  /** Without an address: `NATS_URL`, the `holdfast dev` that runs in this folder, the current context, in this order. */
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
      if (stored && options.flow)
        throw new HoldfastError({
          code: "invalid_option",
          message: "a start has both inputBlob and flow: with limits give the input itself",
        });
      const flow = options.flow && flowTarget(id, name, input, options.flow);
      const sent = flow
        ? await this.#requestStart(id, flow, at)
        : await this.#send(
            this.#names.start(id, name),
            `start-${id}`,
            stored ? { blob: stored } : await this.#wrap(input, id),
            { headers: traceHeaders(), delayed: at === undefined ? undefined : { at, id } },
          );
      const { clock } = this.#runtime;
      return handleOf(this, id, {
        clock,
        // Started before, it may have ended before.
        at: sent.duplicate || flow || at !== undefined ? Number.NEGATIVE_INFINITY : clock.monotonic(),
        // Served by another version, it may return something else than this one's types say.
        checked: (output) => validate(definition?.output, output, "invalid_output", `output of ${name}`),
      });
    });
  }

  /**
   * Starts the same orchestration with the same input under another id, however this one went or goes. Nothing changes
   * for this one.
   */
  startAgain(instanceId: string, options: Pick<StartOptions, "id"> = {}): Promise<InstanceHandle> {
    return userFacing(async () => {
      const summary = await this.#instances.find(requireToken("instance id", instanceId));
      if (!summary || !wasStarted(summary)) throw notFound(instanceId);
      const { name, input, status } = summary;
      if (name === undefined || status === "pending") throw notBegun(instanceId);
      if (options.id === instanceId) throw sameId(instanceId);
      // Stored anew where it is big: a value belongs to its instance, and goes with it.
      return this.start(name, input && (await this.#payloads.unwrap(input)), options);
    });
  }

  /** A handle to an instance that was started elsewhere or earlier. */
  get<O = unknown>(instanceId: string): InstanceHandle<O> {
    return handleOf<O>(this, instanceId);
  }

  /** The output, once it has ended; its error, thrown, where it failed. */
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

  /** Waits, at most so long, and tells what is known then. Undefined where there is no such instance. */
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
   * Also before the start: kept for it, in order. With a `messageId` of the caller's own it may be sent again, however
   * much later: the instance receives it once.
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
      // The server knows ids without regard to whom they are for: those of a caller are made the instance's own.
      const msgId = `signal-${instanceId}-${messageId ?? token(this.#runtime.random)}`;
      const value = await this.#wrap(payload, instanceId);
      const headers = messageId === undefined ? undefined : { [messageIdHeader]: messageId };
      await this.#send(this.#names.signal(instanceId, name), msgId, value, { headers });
    });
  }

  /**
   * Asks the code of an instance, running or over; changes nothing. Answered from memory where its owner has it there,
   * by replay otherwise.
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
   * Changes an instance and waits for the answer of its handler. Under an id of your own it is applied once, however often
   * it is sent; what its code refuses leaves no trace.
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

  /** As `update`, but waits only until it is accepted; `result` of the handle waits for its answer. */
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
      const updateId = requireToken("update id", id ?? token(this.#runtime.random));
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

  /** Asks the code to end; it may clean up first. */
  cancel(instanceId: string, reason?: string): Promise<void> {
    return this.#control(instanceId, "cancel", reason);
  }

  /** Ends it at once, whatever it is doing. */
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

  /** All events of all executions still stored. */
  history(instanceId: string): Promise<HistoryEntry[]> {
    return userFacing(async () => entriesOf(await this.#commits(instanceId)));
  }

  /** The same as a file that can be kept and replayed, with the values that are too big for a message. */
  historyFile(instanceId: string): Promise<HistoryFile> {
    return userFacing(async () => {
      const commits = await this.#commits(instanceId);
      return historyFile(instanceId, commits, await storedValues(commits, this.#payloads));
    });
  }

  /** What its activities and calls write while they run: all of it, then live until the instance ends. */
  stream(instanceId: string, options: StreamOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
    requireToken("instance id", instanceId);
    const bus = this.#bus;
    const parts = { bus, names: this.#names, runtime: this.#runtime, payloads: this.#payloads };
    return readStream({ ...parts, instances: this.#instances }, instanceId, options);
  }

  session(sessionId: string): SessionAccess {
    return this.sessions.access(sessionId);
  }

  close(): Promise<void> {
    return this.#bus.close();
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
      await publishSurely(this.#bus, {
        subject: this.#names.verb(instanceId, verb),
        body: encode(reason === undefined ? {} : { reason }),
        msgId: `${verb}-${instanceId}-${token(this.#runtime.random)}`,
      });
    });
  }

  async #wrap(value: unknown, owner: string): Promise<Payload | undefined> {
    return value === undefined ? undefined : this.#payloads.wrap(value, owner);
  }

  /** The value itself is the body, no value is no body; a big one lies in the object store and the header says where. */
  #send(
    subject: string,
    msgId: string,
    payload: Payload | undefined,
    { headers, delayed }: SendOptions = {},
  ): Promise<{ duplicate: boolean }> {
    const way = delayed
      ? { subject: this.#names.delayedStart(delayed.id), schedule: { at: delayed.at, target: subject } }
      : { subject };
    if (payload && "json" in payload)
      return publishSurely(this.#bus, { ...way, msgId, body: encode(payload.json), headers });
    const blob = payload && { [blobHeader]: JSON.stringify(payload.blob) };
    return publishSurely(this.#bus, {
      ...way,
      msgId,
      body: new Uint8Array(),
      headers: blob ? { ...headers, ...blob } : headers,
    });
  }

  /** To whoever keeps its key, who is started by the first that asks. */
  async #requestStart(
    id: string,
    { keeper, orchestration, signal, request }: FlowTarget,
    at: number | undefined,
  ): Promise<{ duplicate: boolean }> {
    if (!this.#keepers.has(keeper)) {
      await this.#send(this.#names.start(keeper, orchestration), `start-${keeper}`, { json: {} });
      this.#keepers.add(keeper);
    }
    const payload = await this.#wrap(request, id);
    const delayed = at === undefined ? undefined : { at, id };
    return this.#send(this.#names.signal(keeper, signal), `start-${id}`, payload, { delayed });
  }

  #waitDeps() {
    return { bus: this.#bus, names: this.#names, runtime: this.#runtime, instances: this.#instances };
  }

  #historyStore(): Promise<HistoryStore> {
    this.#history ??= this.#openHistory().catch((error: unknown) => {
      this.#history = undefined; // asked again next time
      throw error;
    });
    return this.#history;
  }

  /** For reading only. How many shared streams there are is seen from the server, so no client has to be told. */
  async #openHistory(): Promise<HistoryStore> {
    const bus = this.#bus;
    const names = this.#names;
    const shards = (await bus.streamNames(names.sharedHistories)).length;
    const runtime = this.#runtime;
    const layout = "shared" as const;
    return new HistoryStore({ bus, names, layout, maxOwnStreams: 0, shards, replicas: 1, runtime });
  }
}

/** A client of the installation at `url`, or of the one that is found (see `Client.connect`). */
export const connect = (options: ClientConnectOptions = {}): Promise<Client> => Client.connect(options);

/** What the caller said goes before what was found. */
const found = (given: Omit<ClientConnectOptions, "url">) => ({ ...whereToConnect(), ...given });

/** The caller's trace goes on in the instance, where the caller has one. */
function traceHeaders(): Headers | undefined {
  const traceparent = activeTraceparent();
  return traceparent === undefined ? undefined : { traceparent };
}
