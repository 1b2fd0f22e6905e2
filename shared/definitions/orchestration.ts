import type { SessionState } from "../../schemas/index.ts";
import { Fault } from "../errors/index.ts";
import type { Duration } from "../runtime/index.ts";
import type { ActivityDefinition, ActivityOptions, AnyActivity, LocalOptions, WorkLog } from "./activity.ts";
import type { ConfiguredArguments, InputArguments, InputOf, OutputOf } from "./arguments.ts";
import { brand, requireName } from "./brand.ts";
import type { QueryDefinition, SignalStream, UpdateDefinition } from "./message.ts";
import { refuseUnknownOptions } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";
import type { AnySession, Call, CallsOf, ConfigOf, SessionDefinition } from "./session.ts";
import type { AnySignal, SignalOut } from "./signal.ts";

export interface OpenSessionOptions<Config = unknown> {
  /** Unique over the installation; derived from the instance where absent. */
  id?: string;
  config?: Config;
  creationTimeout?: Duration;
  /** Longest life, whatever happens. */
  executionTimeout?: Duration;
  /** Parks the session when nobody called it for so long; without a checkpoint its state is made anew by `init`. 0: never. */
  idleTimeout?: Duration;
  leaseTtl?: Duration;
  onLost?: "fail" | "reclaim" | "rebuild" | "restore";
  recovery?: {
    /** Run once per attachment before anything else, for `onLost: "rebuild"`. */
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
  /** Return at once, claim at the first call. */
  lazy?: boolean;
  /**
   * Without a type: how many activities run on it at a time. Default: as many as its holder has call slots for; 1: in
   * the order they were issued. A type says it itself.
   */
  concurrency?: number;
}

/** Where a session stands; `pool` for the handle of a pool. */
export type SessionStateName = SessionState["phase"]["kind"] | "pool";

export interface SessionInfo {
  readonly id: string;
  readonly type: string;
  readonly state: SessionStateName;
  readonly epoch: number | undefined;
  readonly attachment: number | undefined;
  readonly workerId: string | undefined;
  readonly host: string | undefined;
  readonly resourceId: string | undefined;
  /** How often `init` made its state. More than 1: what an earlier state held is gone (loss, or an idle time asked for). */
  readonly inits: number;
}

export interface BareSessionHandle extends AsyncDisposable {
  readonly id: string;
  readonly info: SessionInfo;
  /** Runs an activity where the session lives. */
  run<A extends AnyActivity>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, ActivityOptions>
  ): Promise<OutputOf<A>>;
  close(): Promise<void>;
  /** Names the resource; `ctx.recreateSession(token)` opens a session on the same one. */
  token(): string;
}

export type SessionHandle<D extends AnySession> = BareSessionHandle & {
  readonly [K in keyof CallsOf<D>]: CallsOf<D>[K] extends Call<infer _S, infer I, infer O>
    ? (...rest: InputArguments<I, Omit<ActivityOptions, "queue">>) => Promise<O>
    : never;
};

export interface PoolOptions<Config = unknown> {
  /** Pools of the same type and config are one pool, whoever uses it; a name of your own keeps two apart. */
  id?: string;
  /** Kept warm while anybody uses the pool. Default 1. */
  min?: number;
  /** It grows up to this while calls or borrowers wait, and shrinks when members idle. Default 4. */
  max?: number;
  /** How long members stay after the last user has left, in case the next one comes. Default 60 s. */
  linger?: Duration;
  /** `exclusive`: one member for yourself, as a session, until you close it; waits while all are lent. */
  sharing?: "exclusive" | "shared";
  config?: Config;
}

export interface ChildOptions {
  id?: string;
  /** Sessions of this instance the child may use. */
  grant?: BareSessionHandle[];
}

export interface CancellableScope<T> {
  readonly result: Promise<T>;
  cancel(reason?: string): void;
}

export interface TimeoutOption {
  /** Rejects with a TimeoutError (code `timeout`) after so long. */
  timeout?: Duration | undefined;
}

export interface Saga {
  /** Runs if a later step fails. Given before what it undoes, it also runs where that fails halfway. */
  compensate(undo: (ctx: OrchestrationContext) => unknown): void;
  /** Runs a step; once it is done, `undo` is what compensates it. */
  step<T>(
    run: (ctx: OrchestrationContext) => Promise<T>,
    undo: (ctx: OrchestrationContext, done: T) => unknown,
  ): Promise<T>;
}

/**
 * What orchestration code does durable work with. `Input` is what the next execution takes (`continueAsNew`), `State`
 * what `ctx.state` holds.
 */
export interface OrchestrationContext<Input = unknown, State = Record<string, unknown>> {
  readonly instanceId: string;
  readonly execution: number;
  readonly name: string;
  /** Runs an activity on any worker of its queue. */
  run<A extends AnyActivity | string>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, ActivityOptions>
  ): Promise<OutputOf<A>>;
  /**
   * Runs an activity in the orchestrator's process, without a worker: for short steps. Its result is recorded with the
   * turn that follows, its failures are retried by its policy, and it may run again if the orchestrator dies meanwhile.
   */
  local<A extends AnyActivity | string>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, LocalOptions>
  ): Promise<OutputOf<A>>;
  sleep(duration: Duration): Promise<void>;
  /** The next signal of that name, in order of arrival. */
  waitForSignal<G extends AnySignal>(signal: G, options?: TimeoutOption): Promise<SignalOut<G>>;
  waitForSignal<T = unknown>(name: string, options?: TimeoutOption): Promise<T>;
  /** Every signal of that name, one after the other. Ends with the loop. */
  signals<G extends AnySignal>(signal: G): SignalStream<SignalOut<G>>;
  signals<T = unknown>(name: string): SignalStream<T>;
  /**
   * Waits until `holds` is true: looked at once, and again after everything that happens to the instance. It may look at
   * variables of the code and at `ctx.state`, and must not await or change anything.
   */
  until(holds: () => unknown, options?: TimeoutOption): Promise<void>;
  /** Rejects with a TimeoutError after so long, and cancels what `fn` does with the context given to it. */
  timeout<T>(duration: Duration, fn: (ctx: OrchestrationContext) => Promise<T>): Promise<T>;
  /** Undoes in reverse what was done, where a later step fails; then the error goes on. Survives crashes between them. */
  saga<T>(steps: (saga: Saga) => Promise<T>): Promise<T>;
  /** Values that outlive continue-as-new: JSON, typed by the definition's `state`, seen by its `queries`. */
  readonly state: State;
  /** Events of this execution so far. */
  readonly historyLength: number;
  /** True from 10 000 events on: continue as new at the next good moment. */
  readonly suggestContinueAsNew: boolean;
  /**
   * Answers a question about this instance from here on. The answer must not await, throw or change anything: whoever
   * asks gets an error then, and the instance goes on as if nobody had asked. Register before the first `await`.
   */
  onQuery<I, O>(query: QueryDefinition<I, O>, answer: (input: I) => O): void;
  onQuery(query: string, answer: (input: unknown) => unknown): void;
  /**
   * Handles a request that changes this instance and is answered with what `handle` returns. `validate` looks at the
   * present state and throws where the request is to be refused: nothing is recorded of it then. Handlers run beside the
   * rest of the code, in the order their requests came. Register before the first `await`.
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
  /** Updates whose handler has not ended: what ends or continues as new before them answers them with an error. */
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
  openSession(options?: OpenSessionOptions<undefined>): Promise<BareSessionHandle>;
  openSession<D extends AnySession>(
    type: D,
    ...rest: ConfiguredArguments<ConfigOf<D>, OpenSessionOptions<ConfigOf<D>>>
  ): Promise<SessionHandle<D>>;
  /** Opens a session on the resource the token names; fails with SessionResourceGone if it has left. */
  recreateSession<D extends AnySession>(
    token: string,
    type?: D,
    options?: OpenSessionOptions<ConfigOf<D>>,
  ): Promise<SessionHandle<D>>;
  /** Sessions the parent granted to this child. */
  grantedSession<D extends AnySession>(id: string, type?: D): SessionHandle<D>;
  usePool<D extends AnySession>(
    type: D,
    ...rest: ConfiguredArguments<ConfigOf<D>, PoolOptions<ConfigOf<D>>>
  ): Promise<SessionHandle<D>>;
  /** Ends this execution and begins the next with a fresh history. Open sessions and unread signals come along. */
  continueAsNew(...input: undefined extends Input ? [input?: Input] : [input: Input]): never;
  /** Time of this turn; the same on replay. */
  now(): number;
  random(): number;
  uuid(): string;
  /** Runs once, is recorded, and returns the recorded value on replay. Must not await. */
  sideEffect<T>(fn: () => T): T;
  setStatus(status: unknown): void;
  /** True for instances that reach this point first with the changed code. */
  patched(id: string): boolean;
  /** Aborts when the instance is asked to cancel. */
  readonly signal: AbortSignal;
  /** Operations of the context given to `fn` can be cancelled together, without the rest. */
  scope<T>(fn: (ctx: OrchestrationContext<Input>) => Promise<T>): CancellableScope<T>;
  /** Operations of the context given to `fn` are not cancelled with the instance; for clean-up. */
  uncancellable<T>(fn: (ctx: OrchestrationContext<Input>) => Promise<T>): Promise<T>;
  /** A loser of `Promise.race` or `Promise.any` is cancelled with what it waits for, unless it is shielded. */
  shield<T>(promise: Promise<T>): Promise<T>;
  readonly log: WorkLog;
}

export interface OrchestrationDefinition<I = unknown, O = unknown> {
  readonly [brand]: "orchestration";
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  /** What `ctx.state` is when an instance begins. */
  readonly state?: Record<string, unknown> | undefined;
  /** Answered from `ctx.state` alone. */
  readonly queries?: Readonly<Record<string, StateQuery>> | undefined;
  /** Continues as new by itself after so many events. */
  readonly autoContinue?: number | undefined;
  run(ctx: OrchestrationContext<I>, input: I): Promise<O>;
}

type StateQuery = (state: never, input: never) => unknown;

// biome-ignore lint/suspicious/noExplicitAny: a bag of definitions of every type; `unknown` is not assignable both ways
export type AnyOrchestration = OrchestrationDefinition<any, any>;

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
    /** Questions answered from `ctx.state`, without a word in the code. */
    queries?: Record<string, (state: Readonly<S>, input: unknown) => unknown>;
    /**
     * Continues as new by itself after so many events, whenever the code waits for nothing but signals, updates and
     * conditions: with the same input, `ctx.state` and the unread signals. For code that can begin anew from these.
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
