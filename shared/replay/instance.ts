/**
 * One instance in memory: its state and its running code. Takes turns; knows nothing of the bus. Dropping it and
 * building it again from its commits changes nothing (T8).
 */
import type {
  Commit,
  EventId,
  EventKind,
  Failure,
  HistoryEvent,
  NewEvent,
  SessionState,
} from "../../schemas/index.ts";
import {
  currentRules,
  flowOrchestration,
  isCommand,
  leftOutOrchestration,
  lenderOrchestration,
  Name,
  poolOrchestration,
  scheduleOrchestration,
} from "../../schemas/index.ts";
import type { App } from "../definitions/index.ts";
import { Fault, isFault } from "../errors/index.ts";
import { accept } from "./decide/accept.ts";
import type { PlacementFacts } from "./decide/accept-session.ts";
import { closings, requestAgain } from "./decide/accept-session.ts";
import type { Accepted, InboxMessage } from "./decide/inbox.ts";
import { rebuildTask } from "./decide/rebuild.ts";
import { endedInstance, noInstance, parkedInstance, refusedBecause } from "./decide/refusals.ts";
import { apply } from "./fold/apply.ts";
import type { Effect } from "./fold/effects.ts";
import { eventOfFirstGeneration } from "./fold/first-generation.ts";
import { type InstanceState, initialState, isEnded, sessionTasks, type UpdateRecord } from "./fold/state.ts";
import type { Asked } from "./handles/queries.ts";
import type { Considered } from "./handles/updates.ts";
import { engineEnding } from "./run/engine-ending.ts";
import { offload, type PayloadAccess, valuesOf } from "./run/payload-access.ts";
import { type IssuedCommand, type Journal, Runner, type Shown } from "./run/runner.ts";

export interface InstanceHost extends Journal {
  readonly app: App;
  readonly payloads: PayloadAccess;
  readonly placement: PlacementFacts;
  /** Events of one execution; it fails when it has so many. */
  readonly historyLimit?: number | undefined;
  /** Which fields everybody alive can read (E1). Absent: all. */
  readonly generation?: { allows(generation: number): boolean };
}

export interface Turn {
  events: HistoryEvent[];
  effects: Effect[];
  /** True while the code could not be run: facts only, to be shown to it later. */
  deferred: boolean;
  /** The first commit of its execution. */
  startsExecution: boolean;
}

export class Instance {
  readonly #host: InstanceHost;
  #state: InstanceState;
  #runner: Runner | undefined;
  /** Recorded while parked: not yet seen by the code. */
  #unseen: Shown[] = [];
  #isAhead = false;
  #parked: Fault | undefined;
  #wasParked = false;
  #inbox: number[] = [];
  #lastInbox: readonly number[] = [];
  /** What the last commit asked for; published again when one of its messages comes twice (T3). */
  #lastEffects: Effect[] = [];

  /** `setAside`: its code must not be run, for this reason; what happens to it is recorded all the same (T9). */
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

  /** Facts the code has not been shown: it was parked, or could not be found. */
  get hasUnseen(): boolean {
    return this.#unseen.length > 0;
  }

  /**
   * The code was shown deferred facts and asked for nothing, so no commit says that it has seen them. Replay shows them
   * together with the next facts, when sessions may stand otherwise: whoever has such facts loads the instance again
   * first (T8). Questions may be asked all the same.
   */
  get isAhead(): boolean {
    return this.#isAhead;
  }

  /** True while the code runs here, and can be asked. */
  get hasCode(): boolean {
    return this.#runner !== undefined;
  }

  /** True once after the code went on again where it had been parked. */
  takeResumed(): boolean {
    const resumed = this.#wasParked && !this.#parked;
    if (resumed) this.#wasParked = false;
    return resumed;
  }

  get lastEffects(): readonly Effect[] {
    return this.#lastEffects;
  }

  /**
   * Builds state and code from one execution's commits. A disagreement parks (T6), it does not throw. `check`: the code
   * is run to see whether it agrees, also where it is over.
   */
  async load(commits: readonly Commit[], { check = false } = {}): Promise<void> {
    // What is over needs no code any more, only its state.
    const over = commits
      .at(-1)
      ?.events.some(({ kind }) => endings.has(kind) || kind === "instance.continued");
    for (const commit of commits) await this.#replay(commit, !check && over === true);
    // Whoever made the last commit may have died before it told that the code goes on again.
    if (!over && commits.at(-2)?.deferred) this.#wasParked = true;
  }

  async #replay(commit: Commit, foldOnly: boolean): Promise<void> {
    const state = this.#state;
    if (state.execution < commit.execution) state.execution = commit.execution;
    const { events, at } = commit;
    const firstCommand = events.findIndex(isCommand);
    const lead = commit.deferred || firstCommand < 0 ? events : events.slice(0, firstCommand);
    const rest = commit.deferred || firstCommand < 0 ? [] : events.slice(firstCommand);
    const effects = lead.flatMap((event) => apply(state, event, at));
    if (foldOnly) {
      this.#wasParked = false;
    } else if (commit.deferred) {
      this.#unseen.push(...lead.map((fact) => ({ fact, at })));
      this.#wasParked = true;
    } else {
      this.#wasParked = false;
      await this.#show(lead, at, rest.filter(isCommand), events);
    }
    effects.push(...rest.flatMap((event) => apply(state, event, at)));
    for (const seq of commit.inbox) state.applied.add(seq);
    // However many came since: it is unacknowledged, and must be known again.
    if (commit.anchor !== undefined) state.applied.add(commit.anchor);
    this.#lastInbox = behind(commit.inbox, commit.anchor);
    this.#lastEffects = effects;
  }

  /** Decides what a message means and applies it. Must be followed by `finish` in the same turn. */
  take(message: InboxMessage, now: number, turn: HistoryEvent[], effects: Effect[]): Accepted {
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
      // Made for this turn and nobody else's: a copy would cost more than the rest of its way.
      const recorded = event as HistoryEvent;
      recorded.id = (this.#state.lastEventId + 1) as EventId;
      effects.push(...apply(this.#state, recorded, at));
      turn.push(recorded);
    }
  }

  /** Runs the code over the facts of this turn and adds what it asks for. */
  async finish(facts: HistoryEvent[], effects: Effect[], now: number): Promise<Turn> {
    const startsExecution = facts[0]?.id === 1;
    const turn: Turn = { events: facts, effects, deferred: false, startsExecution };
    if (isEnded(this.#state)) {
      this.#runner = undefined;
      this.#parked = undefined;
    } else if (this.#state.status === "running") {
      await this.#runCode(turn, now);
    }
    // Copied: an array that grew has room to spare, and this one may be kept for long.
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
      if (endings.has(small.kind)) this.#record(closings(this.#state), now, turn.events, turn.effects);
      if (small.kind === "instance.continued") this.#request(asked, now, turn);
      this.#record([small], now, turn.events, turn.effects);
      if (small.kind === "session.opened") asked.add(small.sessionId);
      if (small.kind === "activity.scheduled" && small.target.kind === "session")
        asked.add(small.target.sessionId);
    }
    // Behind all commands: the code knows the ids of its commands when it issues them (REPLAY-4).
    this.#request(asked, now, turn);
    await this.#boundHistory(now, turn);
    this.#isAhead = wasBehind && turn.events.length === 0;
  }

  /** A long history is continued by itself where the definition says so, and ended where it passes the limit. */
  async #boundHistory(now: number, turn: Turn): Promise<void> {
    const { payloads, historyLimit } = this.#host;
    const ending = this.#runner && engineEnding(this.#runner, this.#state, historyLimit);
    if (!ending) return;
    const { event, payloadBytes } = ending;
    const isLarge = payloadBytes > payloads.inlineBytes;
    const small = isLarge ? await offload(event, payloads, this.#state.instanceId) : event;
    const closed = endings.has(small.kind) ? closings(this.#state) : [];
    this.#record([...closed, small], now, turn.events, turn.effects);
  }

  /** Sessions the code opened or called in this turn and nobody was asked to hold yet. */
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
    recorded: HistoryEvent[] | undefined,
    visible: readonly HistoryEvent[],
  ): Promise<IssuedCommand[]> {
    if (this.#parked) return [];
    const state = this.#state;
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
      const values = valuesOf(recorded ? [...looked, ...visible] : looked, this.#host.payloads);
      issued = await runner.round(unseen, at, recorded, values instanceof Promise ? await values : values);
    } catch (error) {
      // A value that is gone or damaged: the code cannot go on without it, and trying again does not bring it back (T9).
      if (!isFault(error, "contract")) throw error;
      runner.failWith(error);
    }
    const { fault } = runner;
    if (!fault) return issued;
    // Of a live round the earlier leftovers stay unseen; its own facts are added by the caller.
    this.#park(fault, recorded === undefined ? before : unseen);
    return [];
  }

  #park(fault: Fault, unseen: Shown[]): void {
    this.#parked = fault;
    this.#runner = undefined;
    this.#unseen = unseen;
  }

  #unknown(name: string, facts: readonly HistoryEvent[]): IssuedCommand[] {
    const names = [...this.#host.app.orchestrations.keys()].filter((known) => !keepers.has(known));
    const failure: Failure = {
      code: "unknown_orchestration",
      message: `no orchestration named "${name}"; there ${names.length === 1 ? "is" : "are"}: ${names.join(", ") || "none"}`,
      retryable: false,
      details: { name, names },
    };
    // A history that ran under this name has lost its code by a deployment: wait for it (T6). A new start is refused.
    const isNew = facts.some((fact) => fact.kind === "instance.started") && this.#state.execution === 1;
    if (!isNew) {
      this.#park(new Fault("nondeterminism", { code: failure.code, message: failure.message }), this.#unseen);
      return [];
    }
    return [{ event: { kind: "instance.failed", error: failure }, payloadBytes: 0 }];
  }

  /**
   * Asks the code, between two turns; nothing is recorded (Q1). What is over is asked like what runs, if it was loaded
   * with `check`.
   */
  query(name: string, input: unknown): Asked {
    const { instanceId, status } = this.#state;
    if (status === "absent" || status === "pending") return noInstance(instanceId);
    if (this.#parked) return parkedInstance(instanceId, this.#parked);
    const runner = this.#runner;
    if (!runner) throw new Error(`${instanceId} was not loaded with its code`);
    return runner.queries.ask(instanceId, runner.now, name, input);
  }

  /** True where what comes before the update in the inbox must be seen by the code first (T7). */
  mustSeeFirst(update: UpdateMessage): boolean {
    return this.hasUnseen || !this.#runner || this.#runner.updates.dependsOnState(update.name);
  }

  /** Whether the code takes an update, before anything is recorded of it (Q2). */
  async consider(update: UpdateMessage): Promise<Considered | { kind: "known"; record: UpdateRecord }> {
    const state = this.#state;
    const { instanceId, status } = state;
    const record = state.updates.get(update.updateId);
    if (record) return { kind: "known", record };
    if (status === "absent" || status === "pending") return noInstance(instanceId);
    if (isEnded(state)) return endedInstance(instanceId, status);
    if (this.#parked) return parkedInstance(instanceId, this.#parked);
    const runner = this.#runner;
    if (!runner) throw new Error(`${instanceId} was not loaded with its code`);
    const older = runner.needs(2, "updates");
    if (older) return refusedBecause(older.code, older.message);
    const { payload, name } = update;
    try {
      const input = "json" in payload ? payload.json : await this.#host.payloads.fetch(payload);
      return runner.updates.consider(instanceId, runner.now, name, input);
    } catch (error) {
      // Its input is gone or damaged: its sender's trouble, not the instance's.
      if (!isFault(error, "contract")) throw error;
      return refusedBecause(error.code, `input of update "${name}": ${error.message}`);
    }
  }

  /** After `instance.continued`: a fresh state with what comes along. The caller finishes the turn. */
  continueAsNew(now: number, facts: HistoryEvent[], effects: Effect[]): void {
    const before = this.#state;
    if (!before.next) throw new Error("continueAsNew without instance.continued");
    const { name, input, signals, state: entity } = before.next;
    const sessions = [...before.sessions.values()].filter(
      ({ phase }) => phase.kind !== "closed" && phase.kind !== "failed" && phase.kind !== "lost",
    );
    this.#state = initialState(before.instanceId);
    this.#state.execution = before.execution + 1;
    this.#inbox = [...before.applied].slice(-carriedSequences);
    for (const seq of this.#inbox) this.#state.applied.add(seq);
    this.#runner = undefined;
    this.#unseen = [];
    const started: NewEvent = {
      kind: "instance.started",
      name: Name.parse(name),
      input,
      parent: before.parent,
      follower: before.follower,
      traceparent: before.traceparent,
      rules: currentRules,
      carried: {
        signals: signals.map((signal) => ({ ...signal, name: Name.parse(signal.name) })),
        sessions: sessions.map(withoutTask),
        ...spentBefore(before),
        ...updatesBefore(before),
        ...(entity && { state: entity }),
        ...receivedBefore(before),
        startedAt: before.startedAt,
      },
    };
    // A rebuild was let go of with the other tasks, but the session still needs it.
    const rebuilds = sessions.filter(({ phase }) => phase.kind === "rebuilding").map(rebuildTask);
    this.#record([started, ...rebuilds], now, facts, effects);
    // Whoever asked the instance to cancel did not mean one execution of it.
    if (before.cancelRequested)
      this.#record([{ kind: "cancel.requested", reason: before.cancelReason }], now, facts, effects);
  }

  /** The message with this sequence became a fact of this turn. */
  applied(seq: number): void {
    this.#state.applied.add(seq);
    this.#inbox.push(seq);
  }

  /** Sequences to record with the commit of this turn; `anchor` is recorded beside them. */
  takeInbox(anchor?: number): number[] {
    const inbox = this.#inbox;
    this.#inbox = [];
    if (anchor !== undefined) this.#state.applied.add(anchor);
    this.#lastInbox = behind(inbox, anchor);
    return inbox;
  }

  /** Whether this message is behind the latest commit: then its effects may not all be out (T3). */
  isBehindLastCommit(seq: number): boolean {
    return this.#lastInbox.includes(seq);
  }
}

type UpdateMessage = Extract<InboxMessage, { kind: "update" }>;

/** Messages whose redelivery means that a commit's effects may not be out. */
const behind = (inbox: readonly number[], anchor: number | undefined): readonly number[] =>
  anchor === undefined ? inbox.slice() : [...inbox, anchor];

/** Ids the code chose may be opened again; those the engine made are never used twice. */
function spentBefore({ instanceId, sessions, spent }: InstanceState): { spent?: Record<string, number> } {
  const used = [...sessions.values()].filter(
    ({ owner, sessionId, attachments }) =>
      owner === instanceId && attachments > 0 && !sessionId.startsWith(`${instanceId}-`),
  );
  const all = [...Object.entries(spent), ...used.map((one) => [one.sessionId, one.attachments] as const)];
  return all.length === 0 ? {} : { spent: Object.fromEntries(all.slice(-carriedIds)) };
}

function updatesBefore({ updates }: InstanceState): { updates?: Name[] } {
  return updates.size === 0
    ? {}
    : { updates: [...updates.keys()].slice(-carriedIds).map((id) => Name.parse(id)) };
}

/** Of more ids than that the oldest are forgotten: whoever opens one again is told that it was used. */
const carriedIds = 1000;

function receivedBefore({ messageIds }: InstanceState): { messageIds?: string[] } {
  const ids = [...messageIds].map(([id]) => id);
  return ids.length === 0 ? {} : { messageIds: ids.slice(-carriedMessageIds) };
}

/** Signals that are sent again after more than so many others, and an execution later, are received again. */
const carriedMessageIds = 1000;

/** More than can be unacknowledged for one instance at the end of an execution. */
const carriedSequences = 1000;

/** The engine's own. */
const keepers: ReadonlySet<string> = new Set([
  poolOrchestration,
  lenderOrchestration,
  scheduleOrchestration,
  flowOrchestration,
  leftOutOrchestration,
]);

const endings: ReadonlySet<EventKind> = new Set([
  "instance.completed",
  "instance.failed",
  "instance.cancelled",
  "instance.terminated",
]);

const withoutTask = (session: SessionState): SessionState =>
  session.phase.kind === "rebuilding"
    ? { ...session, phase: { kind: "active", on: session.phase.on } }
    : session;
