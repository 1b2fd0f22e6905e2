import type { OnLost, SessionState } from "../../schemas/index.ts";
import { Fault } from "../errors/index.ts";
import type { Duration } from "../runtime/index.ts";
import type {
  ActivityDefinition,
  ActivityOptions,
  AnyActivity,
  LocalOptions,
  RunOptions,
  WorkLog,
} from "./activity.ts";
import type { ConfiguredArguments, InputArguments, InputOf, OutputOf } from "./arguments.ts";
import { brand, requireName } from "./brand.ts";
import type { KeyOptions } from "./keyed.ts";
import type { QueryDefinition, SignalStream, UpdateDefinition } from "./message.ts";
import { refuseUnknownOptions } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";
import type { AnySession, Call, CallsOf, ConfigOf, SessionDefinition } from "./session.ts";
import type { AnySignal, SignalOut } from "./signal.ts";

/**
 * How a session is opened: its config, its times, what happens when its worker is lost, and where it may run.
 *
 * @example
 * ```ts
 * await using session = await ctx.openSession(classifier, { config: { model }, onLost: "reclaim" });
 * ```
 */
export interface OpenSessionOptions<Config = unknown> {
  /** Unique in the installation. Default: derived from the instance. */
  id?: string;
  config?: Config;
  creationTimeout?: Duration;
  /** Longest life of the session, whatever happens. */
  executionTimeout?: Duration;
  /**
   * Parks the session after this long without a call; without a checkpoint `init` makes its state anew. 0:
   * never.
   */
  idleTimeout?: Duration;
  leaseTtl?: Duration;
  onLost?: OnLost;
  recovery?: {
    /** For `onLost: "rebuild"`: runs once per attachment before any call. */
    rebuild?: { activity: ActivityDefinition<never, unknown> | string; input?: unknown };
    /** How often one interrupted call is tried again. Default 3. */
    maxAutoRetries?: number;
  };
  placement?: {
    tags?: string[];
    resources?: Record<string, number>;
    buildId?: string;
    affinityKey?: string;
  };
  maxInitAttempts?: number;
  metadata?: Record<string, string>;
  /** Return at once, and claim a worker at the first call. */
  lazy?: boolean;
  /**
   * For a session without a type: how many activities run on it at a time. Default: as many as its holder has
   * call slots for; 1: in the order they were issued. A type sets its own.
   */
  concurrency?: number;
  /**
   * While a quota of the installation is reached: wait for a seat (default), or fail with
   * SessionQuotaExceeded at once.
   */
  whenFull?: "wait" | "fail";
}

/** The state of a session; `pool` for the handle of a pool. */
export type SessionStateName = SessionState["phase"]["kind"] | "pool";

/** The holder of a session, its epoch and its state. */
export interface SessionInfo {
  readonly id: string;
  readonly type: string;
  readonly state: SessionStateName;
  readonly epoch: number | undefined;
  readonly attachment: number | undefined;
  readonly workerId: string | undefined;
  readonly host: string | undefined;
  readonly resourceId: string | undefined;
  /**
   * How often `init` made its state. More than 1: the contents of an earlier state are gone (after a loss, or
   * an idle timeout that was asked for).
   */
  readonly inits: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A session without a type: a worker that activities come back to. */
export interface BareSessionHandle extends AsyncDisposable {
  readonly id: string;
  readonly info: SessionInfo;
  /** Runs an activity on the worker that holds the session. */
  run<A extends AnyActivity>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, ActivityOptions>
  ): Promise<OutputOf<A>>;
  close(): Promise<void>;
  /** Sets the given names and removes those whose value is null. Only on the instance's own session. */
  setMetadata(change: Readonly<Record<string, string | null>>): void;
  /** A token that names the resource; `ctx.recreateSession(token)` opens a session on the same one. */
  token(): string;
}

/** An open session: its calls by name, `run` for activities, `close`, and its `info`. */
export type SessionHandle<D extends AnySession> = BareSessionHandle & {
  readonly [K in keyof CallsOf<D>]: CallsOf<D>[K] extends Call<infer _S, infer I, infer O>
    ? (...rest: InputArguments<I, Omit<ActivityOptions, "queue">>) => Promise<O>
    : never;
};

/** How big a pool may get, how its members are shared, and how long they stay. */
export interface PoolOptions<Config = unknown> {
  /** Pools of the same type and config are one pool for all users; a name of your own keeps two apart. */
  id?: string;
  /** Members kept warm while the pool has a user. Default 1. */
  min?: number;
  /**
   * The pool grows up to this size while calls or borrowers wait, and shrinks when members idle. Default 4.
   */
  max?: number;
  /** How long members stay after the last user has left, in case the next one comes. Default 60 s. */
  linger?: Duration;
  /** `exclusive`: one member for yourself, as a session, until you close it; waits while all are lent. */
  sharing?: "exclusive" | "shared";
  config?: Config;
}

/** How a child orchestration is started. */
export interface ChildOptions {
  id?: string;
  /** Sessions of this instance that the child may use. */
  grant?: BareSessionHandle[];
}

/** Work that can be cancelled as a whole, apart from the rest of the orchestration. */
export interface CancellableScope<T> {
  readonly result: Promise<T>;
  cancel(reason?: string): void;
}

/** How long `waitForSignal` and `until` wait. */
export interface TimeoutOption {
  /** Rejects with a TimeoutError (code `timeout`) after this long. */
  timeout?: Duration | undefined;
}

/**
 * Registers how to undo the steps of `ctx.saga`.
 *
 * @example
 * ```ts
 * await ctx.saga(async (saga) => {
 *   const room = await saga.step((ctx) => ctx.run(bookRoom), (ctx, done) => ctx.run(cancelRoom, done.id));
 *   await ctx.run(pay, room);
 * });
 * ```
 */
export interface Saga {
  /**
   * `undo` runs if a later step fails. Registered before its step, it also runs if that step fails halfway.
   */
  compensate(undo: (ctx: OrchestrationContext) => unknown): void;
  /** Runs a step; once the step is done, `undo` compensates it. */
  step<T>(
    run: (ctx: OrchestrationContext) => Promise<T>,
    undo: (ctx: OrchestrationContext, done: T) => unknown,
  ): Promise<T>;
}

/**
 * The context by which orchestration code does durable work. `Input` is the input of the next execution
 * (`continueAsNew`), `State` the type of `ctx.state`.
 */
export interface OrchestrationContext<Input = unknown, State = Record<string, unknown>> {
  readonly instanceId: string;
  /** From 1; each `continueAsNew` begins the next one. */
  readonly execution: number;
  /** Name of the orchestration. */
  readonly name: string;
  /** Runs an activity on any worker of its queue that has the tags it requires. */
  run<A extends AnyActivity | string>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, RunOptions>
  ): Promise<OutputOf<A>>;
  /**
   * Runs an activity in the orchestrator's process, without a worker: for short steps. Its result is recorded
   * with the turn that follows, its failures are retried by its policy, and it may run again if the
   * orchestrator dies meanwhile.
   */
  local<A extends AnyActivity | string>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, LocalOptions>
  ): Promise<OutputOf<A>>;
  /** Waits this long. A durable timer: it fires even if the process has ended meanwhile. */
  sleep(duration: Duration): Promise<void>;
  /** The next signal of that name, in order of arrival. */
  waitForSignal<G extends AnySignal>(signal: G, options?: TimeoutOption): Promise<SignalOut<G>>;
  waitForSignal<T = unknown>(name: string, options?: TimeoutOption): Promise<T>;
  /** Every signal of that name, one after the other. Ends with the loop. */
  signals<G extends AnySignal>(signal: G): SignalStream<SignalOut<G>>;
  signals<T = unknown>(name: string): SignalStream<T>;
  /**
   * Waits until `holds` returns true: it is called at once, and again after everything that happens to the
   * instance. It may read variables of the code and `ctx.state`, and must not await or change anything.
   */
  until(holds: () => unknown, options?: TimeoutOption): Promise<void>;
  /**
   * Rejects with a TimeoutError after this long, and cancels the operations that `fn` began with the context
   * given to it.
   */
  timeout<T>(duration: Duration, fn: (ctx: OrchestrationContext) => Promise<T>): Promise<T>;
  /**
   * If a step fails, undoes the steps before it in reverse order and then throws the error. Survives crashes
   * in between.
   */
  saga<T>(steps: (saga: Saga) => Promise<T>): Promise<T>;
  /**
   * Values that outlive continue-as-new: JSON, typed by the definition's `state`, readable by its `queries`.
   */
  readonly state: State;
  /** Events of this execution so far. */
  readonly historyLength: number;
  /** True from 10 000 events on: continue as new at the next good moment. */
  readonly suggestContinueAsNew: boolean;
  /**
   * Answers a query about this instance from here on. The answer must not await, throw or change anything:
   * otherwise the caller gets an error, and the instance goes on as if it had not been asked. Register before
   * the first `await`.
   */
  onQuery<I, O>(query: QueryDefinition<I, O>, answer: (input: I) => O): void;
  onQuery(query: string, answer: (input: unknown) => unknown): void;
  /**
   * Handles a request that changes this instance and is answered with the result of `handle`. `validate`
   * reads the present state and throws to refuse the request: a refused request is not recorded. Handlers run
   * beside the rest of the code, in the order in which their requests came. Register before the first
   * `await`.
   */
  onUpdate<I, O>(
    update: UpdateDefinition<I, O>,
    handle: (input: I) => O | Promise<O>,
    options?: { validate?: (input: I) => void },
  ): void;
  onUpdate(
    update: string,
    handle: (input: unknown) => unknown,
    options?: { validate?: (input: unknown) => void },
  ): void;
  /**
   * Number of updates whose handler has not ended. If the execution ends or continues as new before, their
   * callers get an error.
   */
  readonly pendingUpdates: number;
  /** Runs another orchestration and waits for its result. */
  child<C extends AnyOrchestration | string>(
    orchestration: C,
    ...rest: InputArguments<InputOf<C>, ChildOptions>
  ): Promise<OutputOf<C>>;
  /** Starts another orchestration on its own; returns its instance id. */
  spawn<C extends AnyOrchestration | string>(
    orchestration: C,
    ...rest: InputArguments<InputOf<C>, { id?: string }>
  ): string;
  /**
   * Opens a session and waits until a worker holds it. Without a type: a worker that activities come back to, without
   * a state made by the engine.
   */
  openSession(options?: OpenSessionOptions<undefined>): Promise<BareSessionHandle>;
  openSession<D extends AnySession>(
    type: D,
    ...rest: ConfiguredArguments<ConfigOf<D>, OpenSessionOptions<ConfigOf<D>>>
  ): Promise<SessionHandle<D>>;
  /**
   * Opens a session on the resource that the token names; fails with SessionResourceGone if the resource has
   * left.
   */
  recreateSession<D extends AnySession>(
    token: string,
    type?: D,
    options?: OpenSessionOptions<ConfigOf<D>>,
  ): Promise<SessionHandle<D>>;
  /** A session that the parent granted to this child. */
  grantedSession<D extends AnySession>(id: string, type?: D): SessionHandle<D>;
  /**
   * Uses a pool of sessions until its handle is closed: a free member takes each call. With `sharing: "exclusive"` the
   * handle is one member, lent to this instance alone.
   */
  usePool<D extends AnySession>(
    type: D,
    ...rest: ConfiguredArguments<ConfigOf<D>, PoolOptions<ConfigOf<D>>>
  ): Promise<SessionHandle<D>>;
  /**
   * The session of a key: the same one for every instance and client that uses the key. The first user opens
   * it; `close` gives it back, and it lives on until no call has come for its time to live.
   */
  session<D extends AnySession>(type: D, options: KeyOptions<ConfigOf<D>>): Promise<SessionHandle<D>>;
  /**
   * Ends this execution and begins the next with a fresh history. Open sessions and unread signals are
   * carried over.
   */
  continueAsNew(...input: undefined extends Input ? [input?: Input] : [input: Input]): never;
  /** Time of this turn; the same on replay. */
  now(): number;
  /** A random number from 0 to 1; the same on replay. */
  random(): number;
  /** A random UUID; the same on replay. */
  uuid(): string;
  /** Runs `fn` once, records its result, and returns the recorded value on replay. `fn` must not await. */
  sideEffect<T>(fn: () => T): T;
  /** Sets the custom status, JSON that `client.status` and lists show. */
  setStatus(status: unknown): void;
  /** True for instances that reach this point first with the changed code. */
  patched(id: string): boolean;
  /** Aborts when the instance is asked to cancel. */
  readonly signal: AbortSignal;
  /** Operations of the context given to `fn` can be cancelled together, without the rest of the instance. */
  scope<T>(fn: (ctx: OrchestrationContext<Input>) => Promise<T>): CancellableScope<T>;
  /** Operations of the context given to `fn` are not cancelled with the instance; for clean-up. */
  uncancellable<T>(fn: (ctx: OrchestrationContext<Input>) => Promise<T>): Promise<T>;
  /**
   * Without `shield`, a loser of `Promise.race` or `Promise.any` is cancelled together with the operation it
   * waits for.
   */
  shield<T>(promise: Promise<T>): Promise<T>;
  /** The log of this instance. Writes nothing during a replay. */
  readonly log: WorkLog;
}

/** An orchestration as `defineOrchestration` returns it. */
export interface OrchestrationDefinition<I = unknown, O = unknown> {
  readonly [brand]: "orchestration";
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  /** The value of `ctx.state` when an instance begins. */
  readonly state?: Record<string, unknown> | undefined;
  /** Queries answered from `ctx.state` alone. */
  readonly queries?: Readonly<Record<string, StateQuery>> | undefined;
  /** Continues as new by itself after this many events. */
  readonly autoContinue?: number | undefined;
  run(ctx: OrchestrationContext<I>, input: I): Promise<O>;
}

type StateQuery = (state: never, input: never) => unknown;

/** An orchestration of any input and output. */
// biome-ignore lint/suspicious/noExplicitAny: a bag of definitions of every type; `unknown` is not assignable both ways
export type AnyOrchestration = OrchestrationDefinition<any, any>;

/**
 * Defines an orchestration: deterministic code that awaits activities, sessions, timers and signals, and
 * survives every crash.
 *
 * @example
 * ```ts
 * export const thumbnails = defineOrchestration("thumbnails", {
 *   input: z.array(z.string()),
 *   run: (ctx, urls) => Promise.all(urls.map((url) => ctx.run(resize, { url }))),
 * });
 * ```
 */
export function defineOrchestration<
  I = unknown,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
  S extends Record<string, unknown> = Record<string, unknown>,
>(
  name: string,
  spec: {
    input?: IS;
    output?: OS;
    /** `ctx.state` at the beginning; JSON. */
    state?: S;
    /** Queries answered from `ctx.state`; the orchestration's code need not register them. */
    queries?: Record<string, (state: Readonly<S>, input: unknown) => unknown>;
    /**
     * Continues as new by itself after this many events, as soon as the code waits for nothing but signals,
     * updates and conditions. The next execution gets the same input, `ctx.state` and the unread signals. For
     * code that can begin anew from these.
     */
    autoContinue?: number;
    run(
      ctx: OrchestrationContext<IS extends Schema ? SchemaIn<IS> : I, S>,
      input: IS extends Schema ? SchemaOut<IS> : I,
    ): Promise<OS extends Schema ? SchemaIn<OS> : O>;
  },
): OrchestrationDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O> {
  refuseUnknownOptions(`orchestration "${name}"`, spec, orchestrationOptionNames);
  return {
    [brand]: "orchestration",
    name: requireName("orchestration", name),
    input: spec.input,
    output: spec.output,
    state: spec.state,
    queries: spec.queries,
    autoContinue: requireAutoContinue(name, spec.autoContinue),
    run: spec.run as OrchestrationDefinition["run"],
  } as OrchestrationDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O>;
}

const orchestrationOptionNames = {
  input: true,
  output: true,
  state: true,
  queries: true,
  autoContinue: true,
  run: true,
} as const;

function requireAutoContinue(name: string, events: number | undefined): number | undefined {
  if (events === undefined || (Number.isInteger(events) && events > 0)) return events;
  throw new Fault("config", {
    code: "invalid_option",
    message: `autoContinue of orchestration "${name}" is ${String(events)}: it must be a whole number of events above 0`,
  });
}

export type { SessionDefinition };
