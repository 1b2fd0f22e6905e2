/** The context of orchestration code: every method is a durable operation, or deterministic, or both. */

import { Name, SessionId, type TaskTarget } from "../../../schemas/index.ts";
import {
  type ActivityOptions,
  type AnyActivity,
  type AnyOrchestration,
  type AnySession,
  type AnySignal,
  type BareSessionHandle,
  type CancellableScope,
  type ChildOptions,
  type ConfigOf,
  type ConfiguredArguments,
  type InputArguments,
  type InputOf,
  type KeyOptions,
  kindOf,
  type LocalOptions,
  type OpenSessionOptions,
  type OrchestrationContext,
  type OutputOf,
  type PoolOptions,
  type QueryDefinition,
  type RunOptions,
  type Saga,
  type Schema,
  type SessionHandle,
  type SignalOut,
  type SignalStream,
  type TimeoutOption,
  type UpdateDefinition,
  validate,
  type WorkLog,
} from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { type Duration, parseDuration } from "../../runtime/index.ts";
import { softLimitEvents } from "../history-limits.ts";
import { ContinueAsNew } from "../run/code-ending.ts";
import { keep } from "../run/promise-graph.ts";
import type { Operation } from "../run/round.ts";
import type { Runner } from "../run/runner.ts";
import { plainValue } from "../run/to-payload.ts";
import { outside } from "../run/turn-window.ts";
import { runChild, spawnChild } from "./child.ts";
import { Condition } from "./conditions.ts";
import { runLocal } from "./local-activity.ts";
import { SignalWait } from "./messages/signal-wait.ts";
import { durableOperation } from "./operation.ts";
import { cancellable, shielded, staked } from "./promise-combinators.ts";
import { defaultQueue } from "./recorded-options.ts";
import { requireId } from "./require.ts";
import { runSaga } from "./saga.ts";
import { Scope } from "./scope.ts";
import { keyedSession } from "./sessions/keyed-session.ts";
import { usePool } from "./sessions/pool-handle.ts";
import { grantedSession, openSession, recreateSession } from "./sessions/session-handle.ts";
import { handled, snapshot, synchronous } from "./snapshot.ts";
import { scheduleTask, type TaskDefinition } from "./task.ts";
import { timeoutScope } from "./timeout-scope.ts";

export class Context implements OrchestrationContext {
  readonly runner: Runner;
  readonly scopeOf: Scope;
  #log: WorkLog | undefined;

  constructor(runner: Runner, scope: Scope) {
    this.runner = runner;
    this.scopeOf = scope;
  }

  /**
   * Writes nothing while replaying. The log's implementation sees the real time and may use what
   * orchestration code may not.
   */
  get log(): WorkLog {
    const { runner } = this;
    const say = (level: keyof WorkLog) => (message: string, fields?: Record<string, unknown>) => {
      if (!runner.replaying) outside(() => runner.log(level, message, fields));
    };
    this.#log ??= { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
    return this.#log;
  }

  get instanceId(): string {
    return this.runner.state.instanceId;
  }

  get execution(): number {
    return this.runner.state.execution;
  }

  get name(): string {
    return this.runner.definition.name;
  }

  get signal(): AbortSignal {
    return this.scopeOf.signal;
  }

  run<A extends AnyActivity | string>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, RunOptions>
  ): Promise<OutputOf<A>>;
  run(activity: AnyActivity | string, input?: unknown, options: RunOptions = {}): Promise<unknown> {
    const definition = typeof activity === "string" ? undefined : activity;
    const { preferWorkerOf, ...own } = options;
    const merged = { ...definition?.options, ...own };
    const queue = requireId(Name, "queue", merged.queue ?? defaultQueue);
    const preferred =
      preferWorkerOf === undefined ? {} : { preferWorkerOf: this.#requireOwnSession(preferWorkerOf) };
    return this.task(activity, input, merged, { kind: "queue", queue, ...preferred }, 3);
  }

  /** The id of a session this instance opened, borrowed or was granted. */
  #requireOwnSession(session: unknown): SessionId {
    const id = typeof session === "object" && session !== null && "id" in session ? session.id : undefined;
    const known = this.runner.state.sessions.get(String(id)) ?? this.runner.sessions.now(String(id));
    if (known !== undefined) return SessionId.parse(id);
    const message = "preferWorkerOf must be a session of this instance, as ctx.openSession returned it";
    throw new HoldfastError({ code: "invalid_option", message });
  }

  local<A extends AnyActivity | string>(
    activity: A,
    ...rest: InputArguments<InputOf<A>, LocalOptions>
  ): Promise<OutputOf<A>>;
  local(activity: AnyActivity | string, input?: unknown, options: LocalOptions = {}): Promise<unknown> {
    return runLocal(this, activity, input, options);
  }

  /** Schedules a task on a queue, on a session, or in this process. */
  task(
    activity: TaskDefinition | string,
    input: unknown,
    options: ActivityOptions,
    target: TaskTarget,
    maxAttempts: number,
  ): Promise<unknown> {
    return scheduleTask(this, activity, input, options, target, maxAttempts);
  }

  sleep(duration: Duration): Promise<void> {
    return this.operation((operation) => {
      const fireAt = this.runner.now + parseDuration(duration, "sleep");
      const id = this.runner.issue({ kind: "timer.created", fireAt });
      return { id, operation: { ...operation, cancelCommand: () => ({ kind: "timer.cancelled", of: id }) } };
    }) as Promise<void>;
  }

  waitForSignal<G extends AnySignal>(signal: G, options?: TimeoutOption): Promise<SignalOut<G>>;
  waitForSignal<T = unknown>(name: string, options?: TimeoutOption): Promise<T>;
  waitForSignal(signal: AnySignal | string, { timeout }: TimeoutOption = {}): Promise<unknown> {
    const { name, schema } = signalOf(signal);
    this.runner.refuseLook(`signal "${name}"`);
    if (timeout !== undefined)
      return timeoutScope(this, timeout, `signal "${name}"`, (inner) =>
        typeof signal === "string" ? inner.waitForSignal(signal) : inner.waitForSignal(signal),
      );
    const wait = new SignalWait(this.runner, this.scopeOf, name, schema);
    const promise = wait.begin();
    promise.catch(handled);
    return staked(promise, wait);
  }

  onQuery<I, O>(query: QueryDefinition<I, O>, answer: (input: I) => O): void;
  onQuery(query: string, answer: (input: unknown) => unknown): void;
  onQuery<I>(query: QueryDefinition<I> | string, answer: (input: I) => unknown): void {
    const name = requireId(Name, "query name", typeof query === "string" ? query : query.name);
    this.runner.refuseLook(`onQuery("${name}")`);
    this.runner.queries.register(query, (input) => answer(input as I));
  }

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
  onUpdate<I>(
    update: UpdateDefinition<I> | string,
    handle: (input: I) => unknown,
    { validate: check }: { validate?: (input: I) => void } = {},
  ): void {
    const name = requireId(Name, "update name", typeof update === "string" ? update : update.name);
    this.runner.refuseLook(`onUpdate("${name}")`);
    const checked = check && ((input: unknown) => check(input as I));
    this.runner.updates.register(update, (input) => handle(input as I), checked);
  }

  get pendingUpdates(): number {
    return this.runner.updates.pending;
  }

  signals<G extends AnySignal>(signal: G): SignalStream<SignalOut<G>>;
  signals<T = unknown>(name: string): SignalStream<T>;
  signals(signal: AnySignal | string): SignalStream<unknown> {
    const { name, schema } = signalOf(signal);
    const wait = () => (typeof signal === "string" ? this.waitForSignal(signal) : this.waitForSignal(signal));
    const next = async () => ({ done: false as const, value: await wait() });
    const end = async () => ({ done: true as const, value: undefined });
    return {
      [Symbol.asyncIterator]: () => ({ next, return: end }),
      drain: () => {
        this.runner.refuseLook(`signals "${name}"`);
        const taken = this.runner.signals.popAll(name);
        return taken.map(({ value }) =>
          validate(schema, value, "invalid_signal", `payload of signal "${name}"`),
        );
      },
    };
  }

  until(holds: () => unknown, { timeout }: TimeoutOption = {}): Promise<void> {
    this.runner.refuseLook("ctx.until");
    const condition = new Condition(this.runner, this.scopeOf, holds);
    const promise = condition.begin();
    promise.catch(handled);
    // A condition that already holds needs no timer.
    if (timeout === undefined || condition.look()) return staked(promise, condition);
    condition.cancel();
    return timeoutScope(this, timeout, "the condition of ctx.until", (inner) => inner.until(holds));
  }

  timeout<T>(duration: Duration, fn: (ctx: OrchestrationContext) => Promise<T>): Promise<T> {
    return timeoutScope(this, duration, "the work of ctx.timeout", fn);
  }

  saga<T>(steps: (saga: Saga) => Promise<T>): Promise<T> {
    return runSaga(this, steps);
  }

  get state(): Record<string, unknown> {
    return this.runner.entity.view;
  }

  get historyLength(): number {
    return this.runner.state.lastEventId;
  }

  get suggestContinueAsNew(): boolean {
    return this.historyLength >= softLimitEvents;
  }

  child<C extends AnyOrchestration | string>(
    orchestration: C,
    ...rest: InputArguments<InputOf<C>, ChildOptions>
  ): Promise<OutputOf<C>>;
  child(
    orchestration: AnyOrchestration | string,
    input?: unknown,
    options: ChildOptions = {},
  ): Promise<unknown> {
    return runChild(this, orchestration, input, options);
  }

  spawn<C extends AnyOrchestration | string>(
    orchestration: C,
    ...rest: InputArguments<InputOf<C>, { id?: string }>
  ): string;
  spawn(orchestration: AnyOrchestration | string, input?: unknown, options: { id?: string } = {}): string {
    return spawnChild(this, orchestration, input, options);
  }

  openSession(options?: OpenSessionOptions<undefined>): Promise<BareSessionHandle>;
  openSession<D extends AnySession>(
    type: D,
    ...rest: ConfiguredArguments<ConfigOf<D>, OpenSessionOptions<ConfigOf<D>>>
  ): Promise<SessionHandle<D>>;
  openSession(
    typeOrOptions?: AnySession | OpenSessionOptions<undefined>,
    options: OpenSessionOptions = {},
  ): Promise<BareSessionHandle> {
    const type = kindOf(typeOrOptions) === "session" ? (typeOrOptions as AnySession) : undefined;
    return openSession(
      this,
      type,
      type ? options : ((typeOrOptions as OpenSessionOptions | undefined) ?? {}),
    );
  }

  recreateSession<D extends AnySession>(
    token: string,
    type?: D,
    options: OpenSessionOptions = {},
  ): Promise<SessionHandle<D>> {
    return recreateSession(this, token, type, options) as Promise<SessionHandle<D>>;
  }

  grantedSession<D extends AnySession>(id: string, type?: D): SessionHandle<D> {
    return grantedSession(this, id, type) as SessionHandle<D>;
  }

  usePool<D extends AnySession>(
    type: D,
    ...[options = {}]: ConfiguredArguments<ConfigOf<D>, PoolOptions<ConfigOf<D>>>
  ): Promise<SessionHandle<D>> {
    return usePool(this, type, options) as Promise<SessionHandle<D>>;
  }

  session<D extends AnySession>(type: D, options: KeyOptions<ConfigOf<D>>): Promise<SessionHandle<D>> {
    return keyedSession(this, type, options) as Promise<SessionHandle<D>>;
  }

  continueAsNew(input?: unknown): never {
    throw new ContinueAsNew(snapshot(input, "input of the next execution"), this.runner.stateSnapshot());
  }

  now(): number {
    return this.runner.now;
  }

  random(): number {
    return this.runner.random.next();
  }

  uuid(): string {
    return this.runner.random.uuid();
  }

  sideEffect<T>(fn: () => T): T {
    const replaying = this.runner.replaying;
    const { payload, bytes } = replaying
      ? { payload: { json: undefined }, bytes: 0 }
      : snapshot(synchronous(outside(fn)), "side effect");
    const recorded = this.runner.issueOrRecall<"side_effect.recorded">(
      { kind: "side_effect.recorded", value: payload },
      bytes,
    );
    return plainValue(this.runner.value(recorded.value)) as T;
  }

  setStatus(status: unknown): void {
    const { payload, bytes } = snapshot(status, "status");
    this.runner.issue({ kind: "status.set", status: payload }, bytes);
  }

  patched(id: string): boolean {
    return this.runner.patched(id);
  }

  scope<T>(fn: (ctx: OrchestrationContext) => Promise<T>): CancellableScope<T> {
    const scope = new Scope(this.scopeOf, false);
    const result = fn(this.within(scope));
    result.catch(handled);
    return { result: cancellable(result, () => scope.cancel()), cancel: (reason) => scope.cancel(reason) };
  }

  uncancellable<T>(fn: (ctx: OrchestrationContext) => Promise<T>): Promise<T> {
    return keep(fn(this.within(new Scope(this.scopeOf, true))));
  }

  shield<T>(promise: Promise<T>): Promise<T> {
    return shielded(promise);
  }

  /** A durable operation in the scope of this context. */
  operation(begin: (operation: Operation) => { id: number; operation: Operation }): Promise<unknown> {
    return durableOperation(this, begin);
  }

  /** The context of the same code in another scope. */
  within(scope: Scope): Context {
    return new Context(this.runner, scope);
  }
}

/** The runner behind a context, for the engine's own keepers. */
export function runnerOf(ctx: OrchestrationContext): Runner {
  if (ctx instanceof Context) return ctx.runner;
  throw new Error("this is not a context that the engine made");
}

const signalOf = (signal: AnySignal | string): { name: string; schema: Schema | undefined } => ({
  name: requireId(Name, "signal name", typeof signal === "string" ? signal : signal.name),
  schema: typeof signal === "string" ? undefined : signal.payload,
});
