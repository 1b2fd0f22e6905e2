/** The context by which orchestration code does durable work. */
import type { Duration } from "../runtime/index.ts";
import type { AnyActivity, LocalOptions, RunOptions, WorkLog } from "./activity.ts";
import type { ConfiguredArguments, InputArguments, InputOf, OutputOf } from "./arguments.ts";
import type { KeyOptions } from "./keyed.ts";
import type { QueryDefinition, SignalStream, UpdateDefinition } from "./message.ts";
import type { AnyOrchestration } from "./orchestration.ts";
import type { AnySession, ConfigOf } from "./session.ts";
import type { BareSessionHandle, OpenSessionOptions, PoolOptions, SessionHandle } from "./session-handles.ts";
import type { AnySignal, SignalOut } from "./signal.ts";

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
   * otherwise the caller gets an error, and the instance continues as if it had not been asked. Register before
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
