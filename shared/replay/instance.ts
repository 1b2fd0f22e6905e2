/**
 * One instance in memory: its state and its running code. It takes turns and knows nothing of the bus.
 * Dropping it and building it again from its commits changes nothing (T8).
 */
import type { Commit, EventId, HistoryEvent, NewEvent } from "../../schemas/index.ts";
import { endsInstance, isCommand } from "../../schemas/index.ts";
import { Fault, isFault } from "../errors/index.ts";
import {
  type AskedInstance,
  askQuery,
  considerUpdate,
  type KnownUpdate,
  type UpdateMessage,
} from "./ask-instance.ts";
import { endedByMessage, endsExecution, roundsOf, splitAtFirstCommand } from "./commit-rounds.ts";
import { accept } from "./decide/accept.ts";
import { closings, requestAgain } from "./decide/accept-session.ts";
import { unknownOrchestration } from "./decide/failures.ts";
import type { Accepted, InboxMessage } from "./decide/inbox.ts";
import { nextExecution } from "./decide/next-execution.ts";
import { apply } from "./fold/apply.ts";
import type { Effect } from "./fold/effects.ts";
import { eventOfFirstGeneration } from "./fold/first-generation.ts";
import { type InstanceState, initialState, isEnded, sessionTasks } from "./fold/state.ts";
import type { Asked } from "./handles/messages/queries.ts";
import type { Considered } from "./handles/messages/updates.ts";
import { RecordedMessages } from "./recorded-messages.ts";
import { engineEnding } from "./run/engine-ending.ts";
import { offload, valuesOf } from "./run/payload-access.ts";
import type { IssuedCommand, Recorded, Shown } from "./run/round.ts";
import { Runner } from "./run/runner.ts";
import type { InstanceHost, Turn } from "./turn-of-instance.ts";

export class Instance {
  readonly #host: InstanceHost;
  #state: InstanceState;
  #runner: Runner | undefined;
  /** Facts recorded while parked, which the code has not seen yet. */
  #unseen: Shown[] = [];
  #isAhead = false;
  #parked: Fault | undefined;
  #wasParked = false;
  #messages = new RecordedMessages();
  /** The effects of the last commit; published again when one of its messages comes twice (T3). */
  #lastEffects: Effect[] = [];

  /** `setAside`: the reason why its code must not be run; facts about it are recorded all the same (T9). */
  constructor(instanceId: string, host: InstanceHost, setAside?: Fault) {
    this.#host = host;
    this.#parked = setAside;
    this.#state = initialState(instanceId);
  }

  get state(): Readonly<InstanceState> {
    return this.#state;
  }

  get parked(): Fault | undefined {
    return this.#parked;
  }

  /** True if there are facts that the code has not seen: it was parked, or could not be found. */
  get hasUnseen(): boolean {
    return this.#unseen.length > 0;
  }

  /**
   * The code has seen deferred facts and issued no command, so no commit says that it has seen them. Replay
   * would show them together with the next facts, when sessions may be in another state: an owner that gets
   * new facts loads the instance again first (T8). Queries are answered without that.
   */
  get isAhead(): boolean {
    return this.#isAhead;
  }

  /** True while the code runs here and can answer queries. */
  get hasCode(): boolean {
    return this.#runner !== undefined;
  }

  /** Returns true once after the code of a parked instance has run again. */
  popResumed(): boolean {
    const resumed = this.#wasParked && !this.#parked;
    if (resumed) this.#wasParked = false;
    return resumed;
  }

  get lastEffects(): readonly Effect[] {
    return this.#lastEffects;
  }

  /**
   * Builds state and code from one execution's commits. If code and history disagree, the instance parks (T6)
   * and nothing is thrown. `check`: runs the code to see whether it agrees, even if the execution has ended.
   */
  async load(commits: readonly Commit[], { check = false } = {}): Promise<void> {
    // An execution that has ended needs only its state, not its code.
    const over = commits.at(-1)?.events.some(endsExecution);
    for (const commit of commits) await this.#replay(commit, !check && over === true);
    // The owner that made the last commit may have died before it announced that the code continues.
    if (!over && commits.at(-2)?.deferred) this.#wasParked = true;
  }

  async #replay(commit: Commit, foldOnly: boolean): Promise<void> {
    const state = this.#state;
    if (state.execution < commit.execution) state.execution = commit.execution;
    const effects: Effect[] = [];
    for (const { events, deferred } of roundsOf(commit))
      await this.#replayRound(events, commit.at, { deferred, foldOnly }, effects);
    for (const seq of commit.inbox) state.applied.add(seq);
    // The anchor is not acknowledged yet and must be recognised again, however many messages came since.
    if (commit.anchor !== undefined) state.applied.add(commit.anchor);
    this.#messages.replayed(commit.inbox, commit.anchor);
    this.#lastEffects = effects;
  }

  async #replayRound(
    events: readonly HistoryEvent[],
    at: number,
    { deferred, foldOnly }: { deferred: boolean; foldOnly: boolean },
    effects: Effect[],
  ): Promise<void> {
    const state = this.#state;
    if (endedByMessage(events, state)) {
      for (const event of events) effects.push(...apply(state, event, at));
      return;
    }
    const { lead, rest } = deferred ? { lead: events, rest: [] } : splitAtFirstCommand(events);
    for (const event of lead) effects.push(...apply(state, event, at));
    this.#wasParked = deferred && !foldOnly;
    if (this.#wasParked) this.#unseen.push(...lead.map((fact) => ({ fact, at })));
    else if (!foldOnly) await this.#show(lead, at, recordedIn(events, rest), events);
    for (const event of rest) effects.push(...apply(state, event, at));
  }

  /** Decides what a message means and applies it. `finish` must follow in the same turn. */
  accept(message: InboxMessage, now: number, turn: HistoryEvent[], effects: Effect[]): Accepted {
    if (this.#state.next)
      throw new Error("nothing happens between instance.continued and the next execution");
    if (this.#isAhead) throw new Error(`${this.#state.instanceId} is ahead of its history: load it again`);
    const accepted = accept(this.#state, message, now, this.#host.placement);
    if (accepted.kind === "facts") this.#record(accepted.facts, now, turn, effects);
    return accepted;
  }

  #record(events: readonly NewEvent[], at: number, turn: HistoryEvent[], effects: Effect[]): void {
    const old = this.#host.generation?.allows(2) === false;
    for (const newest of events) {
      const event = old ? eventOfFirstGeneration(newest) : newest;
      if (event.kind === "instance.started" && this.#state.execution === 0) this.#state.execution = 1;
      // The event was made for this turn alone: a copy would cost more than the rest of its handling.
      const recorded = event as HistoryEvent;
      recorded.id = (this.#state.lastEventId + 1) as EventId;
      effects.push(...apply(this.#state, recorded, at));
      turn.push(recorded);
    }
  }

  /** Runs the code over the facts of this turn and adds the commands it issues. */
  async finish(facts: HistoryEvent[], effects: Effect[], now: number): Promise<Turn> {
    const startsExecution = facts[0]?.id === 1;
    const turn: Turn = { events: facts, effects, deferred: false, startsExecution };
    if (isEnded(this.#state)) {
      this.#runner = undefined;
      this.#parked = undefined;
    } else if (this.#state.status === "running") {
      await this.#runCode(turn, now);
    }
    // Copied, because a grown array has spare room, and this one may be kept for long.
    this.#lastEffects = turn.effects.slice();
    return turn;
  }

  async #runCode(turn: Turn, now: number): Promise<void> {
    const wasBehind = this.hasUnseen;
    const commands = await this.#show(turn.events, now, undefined, turn.events);
    if (this.#parked) {
      turn.deferred = true;
      this.#unseen.push(...turn.events.map((fact) => ({ fact, at: now })));
      return;
    }
    const { instanceId } = this.#state;
    const asked = new Set<string>();
    for (const { event, payloadBytes } of commands) {
      const { payloads } = this.#host;
      const small = payloadBytes <= payloads.inlineBytes ? event : await offload(event, payloads, instanceId);
      if (endsInstance(small)) this.#record(closings(this.#state), now, turn.events, turn.effects);
      if (small.kind === "instance.continued") this.#request(asked, now, turn);
      this.#record([small], now, turn.events, turn.effects);
      if (small.kind === "session.opened") asked.add(small.sessionId);
      if (small.kind === "activity.scheduled" && small.target.kind === "session")
        asked.add(small.target.sessionId);
    }
    // After all commands: the code knows the ids of its commands when it issues them (REPLAY-4).
    this.#request(asked, now, turn);
    await this.#boundHistory(now, turn);
    this.#isAhead = wasBehind && turn.events.length === 0;
  }

  /**
   * The engine continues a long history as new if the definition asks for that, and ends it if it passes the
   * limit.
   */
  async #boundHistory(now: number, turn: Turn): Promise<void> {
    const { payloads, historyLimit } = this.#host;
    const ending = this.#runner && engineEnding(this.#runner, this.#state, historyLimit);
    if (!ending) return;
    const { event, payloadBytes } = ending;
    const isLarge = payloadBytes > payloads.inlineBytes;
    const small = isLarge ? await offload(event, payloads, this.#state.instanceId) : event;
    const closed = endsInstance(small) ? closings(this.#state) : [];
    this.#record([...closed, small], now, turn.events, turn.effects);
  }

  /** Sessions that the code opened or called in this turn and that no worker was asked to hold yet. */
  #request(sessionIds: Set<string>, now: number, turn: Turn): void {
    for (const sessionId of sessionIds) {
      const session = this.#state.sessions.get(sessionId);
      if (session?.phase.kind !== "parked" || session.owner !== this.#state.instanceId) continue;
      const wanted = !session.options.lazy || sessionTasks(this.#state, sessionId).length > 0;
      if (wanted) this.#record([requestAgain(session, now)], now, turn.events, turn.effects);
    }
    sessionIds.clear();
  }

  /** Shows facts to the code. Returns the commands it issued; none while it is parked. */
  async #show(
    facts: readonly HistoryEvent[],
    at: number,
    recorded: Recorded | undefined,
    visible: readonly HistoryEvent[],
  ): Promise<IssuedCommand[]> {
    if (this.#parked) return [];
    const state = this.#state;
    let goesOn = recorded !== undefined && this.#runner !== undefined;
    if (!this.#runner) {
      if (state.status !== "running" || !state.name) return [];
      const definition = this.#host.app.orchestrations.get(state.name);
      if (!definition) return this.#unknown(state.name, recorded === undefined ? facts : []);
      this.#runner = new Runner(definition, state, this.#host);
    }
    const before = this.#unseen;
    const shown = facts.map((fact) => ({ fact, at }));
    const unseen = before.length > 0 ? [...before, ...shown] : shown;
    this.#unseen = [];
    const looked = before.length > 0 ? unseen.map(({ fact }) => fact) : facts;
    const runner = this.#runner;
    let issued: IssuedCommand[] = [];
    try {
      const found = valuesOf(before.length > 0 ? [...looked, ...visible] : visible, this.#host.payloads);
      goesOn &&= !(found instanceof Promise);
      const values = found instanceof Promise ? await found : found;
      issued = await runner.round(unseen, at, recorded, values, goesOn);
    } catch (error) {
      // A payload is missing or damaged: the code cannot continue without it, and trying again does not bring it
      // back (T9).
      if (!isFault(error, "contract")) throw error;
      runner.failWith(error);
    }
    const { fault } = runner;
    if (!fault) return issued;
    // In a live round the earlier facts stay unseen; the caller adds the facts of the round.
    this.#park(fault, recorded === undefined ? before : unseen);
    return [];
  }

  #park(fault: Fault, unseen: Shown[]): void {
    this.#parked = fault;
    this.#runner = undefined;
    this.#unseen = unseen;
  }

  #unknown(name: string, facts: readonly HistoryEvent[]): IssuedCommand[] {
    const failure = unknownOrchestration(this.#host.app, name);
    // A history that ran under this name has lost its code by a deployment: wait for it (T6). A new start is
    // refused.
    const isNew = facts.some((fact) => fact.kind === "instance.started") && this.#state.execution === 1;
    if (!isNew) {
      this.#park(new Fault("nondeterminism", { code: failure.code, message: failure.message }), this.#unseen);
      return [];
    }
    return [{ event: { kind: "instance.failed", error: failure }, payloadBytes: 0 }];
  }

  /**
   * Asks the code between two turns; nothing is recorded (Q1). An execution that is over answers too, if it
   * was loaded with `check`.
   */
  query(name: string, input: unknown): Asked {
    return askQuery(this.#asked, name, input);
  }

  /** True if the code must see the messages before the update in the inbox first (T7). */
  mustSeeFirst(update: UpdateMessage): boolean {
    return this.hasUnseen || !this.#runner || this.#runner.updates.dependsOnState(update.name);
  }

  /** Asks the code whether it accepts an update, before anything is recorded (Q2). */
  consider(update: UpdateMessage): Promise<Considered | KnownUpdate> {
    return considerUpdate(this.#asked, update);
  }

  get #asked(): AskedInstance {
    const { payloads } = this.#host;
    return { state: this.#state, parked: this.#parked, runner: this.#runner, payloads };
  }

  /**
   * After `instance.continued`: a fresh state with everything that is carried over. The caller finishes the
   * turn.
   */
  continueAsNew(now: number, facts: HistoryEvent[], effects: Effect[]): void {
    const before = this.#state;
    const begunAnew = nextExecution(before);
    this.#state = initialState(before.instanceId);
    this.#state.execution = before.execution + 1;
    const carried = [...before.applied].slice(-carriedSequences);
    for (const seq of carried) this.#state.applied.add(seq);
    this.#messages.begin(carried);
    this.#runner = undefined;
    this.#unseen = [];
    this.#record(begunAnew, now, facts, effects);
    // A request to cancel is meant for the instance, not for one execution.
    if (before.cancelRequested)
      this.#record([{ kind: "cancel.requested", reason: before.cancelReason }], now, facts, effects);
  }

  /** The message with this sequence became a fact of this turn. */
  applied(seq: number): void {
    this.#state.applied.add(seq);
    this.#messages.add(seq);
  }

  /** Sequences to record with the commit of this turn; the commit records `anchor` separately. */
  popInbox(anchor?: number): number[] {
    if (anchor !== undefined) this.#state.applied.add(anchor);
    return this.#messages.pop(anchor);
  }

  /** True if this message belongs to the latest commit, whose effects may not all be published (T3). */
  isBehindLastCommit(seq: number): boolean {
    return this.#messages.isOfLastCommit(seq);
  }
}

const recordedIn = (events: readonly HistoryEvent[], rest: readonly HistoryEvent[]): Recorded => ({
  commands: rest.filter(isCommand),
  continuedByEngine: events.some((event) => event.kind === "instance.continued" && event.by === "engine"),
});

/** More than can be unacknowledged for one instance at the end of an execution. */
const carriedSequences = 1000;
