/**
 * Runs one execution's code over its history: facts go in one at a time, commands come out.
 *
 * REPLAY-3 While replaying, every command the code issues must be the next one recorded; the first that is
 *    not stops the code for good (T6).
 * REPLAY-4 Ids of commands are known when they are issued, because the facts of a turn are applied before its
 *    code runs.
 * REPLAY-5 Code that waits for nothing durable and is not done awaits something it must not
 *    (`non_durable_await`).
 */
import type { EventKind, HistoryEvent, NewEvent, Payload, SessionId } from "../../../schemas/index.ts";
import { commandsDiffer, describeCommand } from "../../../schemas/index.ts";
import { type AnyOrchestration, validate, type WorkLog } from "../../definitions/index.ts";
import {
  activityErrorFrom,
  CancelledError,
  childErrorFrom,
  Fault,
  fromFailure,
  type HoldfastError,
  isFault,
  messageOf,
} from "../../errors/index.ts";
import { SparseMap } from "../../runtime/index.ts";
import { sessionLostFailure } from "../decide/failures.ts";
import type { InstanceState } from "../fold/state.ts";
import { Conditions } from "../handles/conditions.ts";
import { Context } from "../handles/context.ts";
import { EntityState } from "../handles/entity-state.ts";
import { Queries } from "../handles/messages/queries.ts";
import { Signals } from "../handles/messages/signals.ts";
import { Updates } from "../handles/messages/updates.ts";
import { Scope } from "../handles/scope.ts";
import type { KeyUse } from "../handles/sessions/keyed-session.ts";
import { OpenSessions } from "../handles/sessions/open-sessions.ts";
import { type CodeEnding, endingCommand } from "./code-ending.ts";
import { CodeRandom } from "./code-random.ts";
import { continuesBeforeNextSignal } from "./engine-ending.ts";
import { Patches } from "./patches.ts";
import { inlineValue } from "./payload-access.ts";
import { waitFor } from "./promise-graph.ts";
import { mismatch, needsNewerFleet, nonDurableAwait, nonDurableCall, outsideTurn } from "./replay-faults.ts";
import type { IssuedCommand, Journal, Operation, Recorded, Shown, Values } from "./round.ts";
import type { toPayload } from "./to-payload.ts";
import { type Occupant, occupant, openWindow } from "./turn-window.ts";

export class Runner implements Occupant {
  readonly state: InstanceState;
  readonly definition: AnyOrchestration;
  readonly followsPromises: boolean;
  readonly emptiesObjects: boolean;
  readonly operations = new SparseMap<number, Operation>();
  readonly sessions = new OpenSessions();
  /** Number of the code's handles per pool: the instance joins with the first and leaves with the last. */
  readonly pools = new SparseMap<string, number>();
  /** Keys in use: the instance joins with the first handle of each and leaves with the last. */
  readonly keys = new SparseMap<string, KeyUse>();
  readonly signals: Signals;
  readonly queries = new Queries();
  readonly updates = new Updates();
  readonly conditions = new Conditions();
  #entity: EntityState | undefined;
  readonly rootScope = new Scope(undefined, false);
  readonly random = new CodeRandom(this);
  now = 0;
  readonly #journal: Journal;
  #values: Values = inlineValue;
  #issued: IssuedCommand[] = [];
  /** Undefined when live. */
  #recorded: Recorded | undefined;
  #nextId = 1;
  #fault: Fault | undefined;
  #ending: CodeEnding | undefined;
  #begun = false;
  /** True in the round that begins the execution. */
  isBeginning = false;
  #over = false;
  readonly #patches = new Patches();
  /** Counters behind derived ids. */
  sessionCount = 0;
  childCount = 0;
  /** Facts delivered so far. */
  delivered = 0;

  constructor(definition: AnyOrchestration, state: InstanceState, journal: Journal) {
    this.definition = definition;
    this.state = state;
    this.#journal = journal;
    this.followsPromises = state.rules >= 1;
    this.emptiesObjects = state.rules < 3;
    this.signals = new Signals(this.followsPromises);
  }

  get instanceId(): string {
    return this.state.instanceId;
  }

  get fault(): Fault | undefined {
    return this.#fault;
  }

  get replaying(): boolean {
    return this.#recorded !== undefined;
  }

  log(level: keyof WorkLog, message: string, fields?: unknown): void {
    this.#journal.log(this.instanceId, level, message, fields);
  }

  /**
   * Returns an error if the code may not issue a command of this generation now. Recorded commands are replayed
   * whichever processes are alive.
   */
  needs(generation: number, what: string): HoldfastError | undefined {
    const older = this.replaying ? undefined : this.#journal.heldBackBy?.(generation);
    return older === undefined ? undefined : needsNewerFleet(what, older);
  }

  refuse(what: string): never {
    throw this.failWith(nonDurableCall(this.definition.name, what));
  }

  /** Throws during a look (Q1); `what` names the refused operation. */
  refuseLook(what: string): void {
    const code = occupant();
    if (code?.looksOnly) code.refuse(what);
  }

  failWith(fault: Fault): Fault {
    this.#fault ??= fault;
    return this.#fault;
  }

  /**
   * One round of a turn: facts already applied to the state, then the code. `recorded`: undefined if the round is
   * new. `goesOn`: see `openWindow`. Returns the commands that the code issued.
   */
  async round(
    facts: readonly Shown[],
    at: number,
    recorded: Recorded | undefined,
    values: Values,
    goesOn: boolean,
  ): Promise<IssuedCommand[]> {
    this.#values = values;
    this.#recorded = recorded;
    this.isBeginning = facts[0]?.fact.id === 1;
    this.sessions.beginRound();
    this.#nextId = this.state.lastEventId + 1;
    await openWindow(
      this,
      facts,
      (shown) => this.#step(shown.at, shown.fact),
      () => this.#step(at, undefined),
      goesOn,
    );
    const issued = this.#issued;
    // An instance may wait for long: data of this round is not kept for that time.
    this.#issued = [];
    this.#values = inlineValue;
    if (this.#fault) return [];
    if (recorded?.commands[0]) this.failWith(mismatch(recorded.commands[0], undefined));
    if (!this.#fault && this.#waitsForNothing()) this.failWith(nonDurableAwait(this.definition.name));
    return issued;
  }

  /**
   * Without a fact: the end of the round. Any error parks this instance; it must not reach the process (T9).
   */
  #step(at: number, fact: HistoryEvent | undefined): void {
    this.now = at;
    try {
      if (fact) this.#deliver(fact);
      else this.#finish();
    } catch (error) {
      const message = `orchestration "${this.definition.name}": ${messageOf(error)}`;
      this.failWith(
        isFault(error) ? error : new Fault("bug", { code: "turn_failed", message, cause: error }),
      );
    }
  }

  /**
   * Issues a command and returns its event id (REPLAY-4). While replaying it must be the recorded one
   * (REPLAY-3).
   */
  issue(event: NewEvent, payloadBytes = 0): number {
    this.#recordOrMatch(event, payloadBytes);
    return this.#nextId++;
  }

  /** As `issue`, but returns the recorded event while replaying. */
  issueOrRecall<K extends EventKind>(event: NewEvent<K>, payloadBytes = 0): NewEvent<K> {
    const recorded = this.#recordOrMatch(event as NewEvent, payloadBytes);
    this.#nextId++;
    return (recorded ?? event) as NewEvent<K>;
  }

  /**
   * True if the next recorded command is of this kind: a command that an older version accepted is not
   * refused now.
   */
  recalls(kind: EventKind): boolean {
    return this.#recorded?.commands[0]?.kind === kind;
  }

  #recordOrMatch(event: NewEvent, payloadBytes: number): HistoryEvent | undefined {
    if (this.#fault) throw this.#fault;
    this.refuseLook(describeCommand(event));
    if (occupant() !== this) throw this.failWith(outsideTurn(this.definition.name, event));
    if (!this.#recorded) {
      this.#issued.push({ event, payloadBytes });
      return undefined;
    }
    const recorded = this.#recorded.commands.shift();
    if (!recorded || commandsDiffer(recorded, event)) throw this.failWith(mismatch(recorded, event));
    return recorded;
  }

  /** True for instances that reach the point with the changed code; old histories have no mark there. */
  patched(patch: string): boolean {
    return this.#patches.reached(patch, this.#recorded?.commands, () =>
      this.issue({ kind: "patch.marked", patch }),
    );
  }

  /** Stored signals are given out one at a time: a waiter that lost by one is not waiting for the next. */
  resolveNext(): boolean {
    if (this.#fault || this.#ending) return false;
    return (!this.#keepsSignals && this.signals.giveNext()) || this.conditions.resolveNext();
  }

  /** The implementation of `ctx.state`; made when it is first used. */
  get entity(): EntityState {
    this.#entity ??= new EntityState(this.definition.state ?? {}, !this.emptiesObjects);
    return this.#entity;
  }

  /** Undefined if there is no state to carry over. */
  stateSnapshot(): ReturnType<typeof toPayload> | undefined {
    if (this.entity.isEmpty) return undefined;
    const older = this.needs(2, "ctx.state over continue-as-new");
    if (older) throw older;
    return this.entity.snapshot();
  }

  /**
   * True if the code waits for nothing but signals, updates and conditions: it may begin anew from its state.
   */
  get isAtRest(): boolean {
    if (!this.#begun || this.#over || this.#fault || this.#ending) return false;
    const idle = this.operations.size === 0 && !this.sessions.awaited() && this.pools.size === 0;
    return idle && this.updates.pending === 0;
  }

  /** True if unread signals stay unread for the next execution (CONTINUE-1). */
  get #keepsSignals(): boolean {
    return continuesBeforeNextSignal(this, this.#nextId - 1, this.#recorded);
  }

  value(payload: Payload): unknown {
    return this.#values(payload);
  }

  /** Cancels an operation: issues its cancel command, and rejects its promise. */
  cancel(id: number, operation: Operation, reason?: string): void {
    if (this.operations.get(id) !== operation) return;
    this.operations.delete(id);
    if (operation.cancelCommand && this.#isOpen(id)) this.issue(operation.cancelCommand());
    operation.reject(new CancelledError(reason));
  }

  /**
   * True if no fact of this turn answers the operation; one issued in this round is open. A pool is open
   * until it is left: otherwise no code would give back a member that was not taken.
   */
  #isOpen(id: number): boolean {
    const { lastEventId, tasks, timers, children, pools } = this.state;
    return id > lastEventId || tasks.has(id) || timers.has(id) || children.has(id) || pools.has(id);
  }

  #deliver(fact: HistoryEvent): void {
    if (this.#fault || this.#over) return;
    this.delivered++;
    switch (fact.kind) {
      case "instance.started":
        if (fact.carried?.state)
          this.#entity = EntityState.of(this.value(fact.carried.state), !this.emptiesObjects);
        this.queries.registerAll(this.definition.queries, () => this.entity.view);
        for (const { name, payload } of fact.carried?.signals ?? [])
          this.signals.arrive(name, { payload, value: this.value(payload) });
        return this.#begin(this.value(fact.input));
      case "activity.completed":
      case "child.completed":
        return this.#settle(fact.of, (operation) => operation.resolve(this.value(fact.output)));
      case "activity.failed":
        return this.#settle(fact.of, (operation) => operation.reject(activityErrorFrom(fact.error)));
      case "timer.fired":
        return this.#settle(fact.of, (operation) => operation.resolve(undefined));
      case "child.failed":
        return this.#settle(fact.of, (operation) => operation.reject(childErrorFrom(fact.error)));
      case "pool.lent":
        return this.#settle(fact.of, (operation) => operation.resolve(fact.member.sessionId));
      case "signal.received":
        // Signals that came before the start are part of the start event.
        if (this.#begun) this.#signalled(fact.name, fact.payload);
        return;
      case "update.accepted":
        return this.updates.begin(this, fact.id, fact.name, this.value(fact.input));
      case "cancel.requested":
        return this.rootScope.cancel(fact.reason);
      case "session.activated":
        return this.sessions.opened(fact.sessionId);
      case "session.parked":
        return this.sessions.over(fact.sessionId);
      case "session.failed":
        this.sessions.over(fact.sessionId);
        return this.sessions.failed(fact.sessionId, () => fromFailure(fact.error));
      case "session.lost":
        // Only if the session has ended: while it is requested again, its opener keeps waiting.
        if (this.state.sessions.get(fact.sessionId)?.phase.kind !== "lost") return;
        this.sessions.over(fact.sessionId);
        return this.sessions.failed(fact.sessionId, () =>
          fromFailure(sessionLostFailure(fact.sessionId, fact.on, fact.reason, fact.detail)),
        );
      default:
        return;
    }
  }

  #signalled(name: string, payload: Payload): void {
    const signal = { payload, value: this.value(payload) };
    // Code that has ended waits for no signal; the next execution may.
    if ((this.followsPromises && this.#ending) || this.#keepsSignals) this.signals.store(name, signal);
    else this.signals.arrive(name, signal);
  }

  /** The code closes a session: its operations on it are cancelled too, without a command for each. */
  closeSession(sessionId: SessionId): void {
    this.issue({ kind: "session.closed", sessionId });
    this.sessions.closedNow(sessionId);
    this.sessions.failed(sessionId, () => new CancelledError("the session was closed"));
    this.#dropWork(sessionId, "the session was closed");
  }

  /** The code gives back a member of an exclusive pool, and gives up the operations on it. */
  returnMember(use: NewEvent<"pool.left">, sessionId: string): void {
    this.issue(use);
    this.#dropWork(sessionId, "the member was given back");
  }

  #dropWork(sessionId: string, reason: string): void {
    for (const [id, operation] of this.operations) {
      if (operation.sessionId !== sessionId) continue;
      this.operations.delete(id);
      operation.reject(new CancelledError(reason));
    }
  }

  #begin(input: unknown): void {
    this.#begun = true;
    const context = new Context(this, this.rootScope);
    const returned = (value: unknown) => {
      this.#ending = { kind: "returned", value };
    };
    const threw = (error: unknown) => {
      this.#ending = { kind: "threw", error };
    };
    try {
      const { definition } = this;
      const checked = validate(definition.input, input, "invalid_input", `input of "${definition.name}"`);
      waitFor(definition.run(context, checked), returned, threw);
    } catch (error) {
      threw(error);
    }
  }

  #settle(of: number, act: (operation: Operation) => void): void {
    const operation = this.operations.get(of);
    if (!operation) return;
    this.operations.delete(of);
    act(operation);
  }

  #finish(): void {
    const ending = this.#ending;
    if (!ending || this.#over || this.#fault) return;
    this.#over = true;
    const command = endingCommand(this, ending);
    if (isFault(command)) this.failWith(command);
    else this.issue(command.event, command.payloadBytes);
  }

  #waitsForNothing(): boolean {
    if (!this.#begun || this.#over) return false;
    if (this.operations.size > 0 || this.conditions.awaited) return false;
    return !this.sessions.awaited() && !this.signals.awaited();
  }
}
