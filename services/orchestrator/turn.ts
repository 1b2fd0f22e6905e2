/**
 * An instance in memory with what it needs to take turns: its place in history, and where its effects go.
 *
 * TURN-2 A message is acknowledged after the commit it caused and that commit's effects (T2), or when it caused none:
 *    `take` resolves when both are done.
 */
import { type Commit, type InstanceId, scheduleOrchestration } from "../../schemas/index.ts";
import { type Delivery, encode } from "../../shared/bus/index.ts";
import type { Position } from "../../shared/history/index.ts";
import {
  type Accepted,
  type Effect,
  type InboxMessage,
  Instance,
  isEnded,
  isOfSecondGeneration,
  softLimitEvents,
  type Turn,
} from "../../shared/replay/index.ts";
import { SparseMap, token } from "../../shared/runtime/index.ts";
import { adoptPayloads, carriesBlob } from "./adopt-payloads.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { answerIgnored } from "./ignored/answer-ignored.ts";
import { deadLetterIgnored } from "./ignored/dead-letter-ignored.ts";
import type { LaneWork } from "./lane/lane-work.ts";
import type { Mail } from "./mail.ts";
import {
  nothing,
  type PredecessorCommit,
  predecessorCommit,
  stillStands,
  tellsOfDeath,
} from "./predecessor-commit.ts";
import { type EffectTarget, publishEffects } from "./publishing/effects.ts";
import { SessionRegister } from "./publishing/session-register.ts";
import { Summaries } from "./publishing/summaries.ts";
import { knownAnswer, refusedAnswer } from "./updates/update-answer.ts";

interface Loaded {
  instance: Instance;
  position: Position | undefined;
  target: EffectTarget;
  /** Of the present execution. */
  commits: readonly Commit[];
}

export class LoadedInstance {
  /** Built again where the code spoilt it. */
  instance: Instance;
  readonly #deps: OrchestratorDeps;
  #target: EffectTarget;
  #position: Position | undefined;
  #lastAt: number;
  /** Tasks an owner before us meant for the lane. */
  #laned: readonly number[];
  /** The last commit is an owner's before us, who may have died before its effects were out. */
  #inherited: PredecessorCommit;
  /** Of the last commit, here or before us. */
  #lastCommitId: string;
  /** The last commit whose effects are out, as far as this copy has seen to it. */
  #sentCommitId: string | undefined;
  /** What was loaded of an instance that is over: its code is only run for questions. */
  readonly #over: readonly Commit[] | undefined;
  /** People are to be told how it stands when the turn is over. */
  #toShow = false;

  private constructor(deps: OrchestratorDeps, { instance, position, target, commits }: Loaded) {
    const last = commits.at(-1);
    this.instance = instance;
    this.#over = isEnded(instance.state) ? commits : undefined;
    this.#deps = deps;
    this.#target = target;
    this.#position = position;
    this.#lastAt = last?.at ?? 0;
    this.#laned = last?.lane ?? [];
    this.#lastCommitId = last?.commitId ?? "";
    this.#inherited = predecessorCommit(commits);
  }

  /** `assumeNew`: without looking for a history. If there is one, the first append is fenced. */
  static async load(
    deps: OrchestratorDeps,
    instanceId: string,
    signal: AbortSignal,
    assumeNew: boolean,
  ): Promise<LoadedInstance> {
    const { clock, announce } = deps.runtime;
    const startedAt = clock.monotonic();
    const history = assumeNew ? undefined : await deps.history.load(instanceId);
    const last = history?.commits.at(-1);
    const instance = new Instance(instanceId, deps.host, deps.runaways.whyNot(instanceId));
    const outbox = { bus: deps.bus, runtime: deps.runtime, signal };
    const target: EffectTarget = {
      outbox,
      register: new SessionRegister(deps, outbox),
      summaries: new Summaries(deps, !last ? "none" : last.anchor === undefined ? "some" : "anchored"),
      schedules: new SparseMap(),
    };
    if (history) {
      await instance.load(history.commits);
      target.summaries.parked = instance.parked;
      const events = history.commits.reduce((sum, commit) => sum + commit.events.length, 0);
      announce({ kind: "instance.loaded", instanceId, events, ms: clock.monotonic() - startedAt });
    }
    const { position, commits = [] } = history ?? {};
    return new LoadedInstance(deps, { instance, position, target, commits });
  }

  /** Absent where this copy has sent nothing yet. */
  get sentCommitId(): string | undefined {
    return this.#sentCommitId;
  }

  /** The instance where its code can be asked between two turns. */
  get askable(): Instance | undefined {
    const { instance } = this;
    return instance.hasCode && !this.isBehind ? instance : undefined;
  }

  /** Something recorded waits to be shown to the code, which can be run. */
  get isBehind(): boolean {
    const { parked, hasUnseen, state } = this.instance;
    return !parked && (hasUnseen || state.next !== undefined);
  }

  /** A copy for questions alone: of what is over, only the state was loaded. */
  async withCode(): Promise<Instance> {
    const { instance } = this;
    if (!isEnded(instance.state)) return instance;
    const { history, host, runaways } = this.#deps;
    const commits = this.#over ?? (await history.load(this.instanceId))?.commits;
    const copy = new Instance(this.instanceId, host, runaways.whyNot(this.instanceId));
    await copy.load(commits ?? [], { check: true });
    return copy;
  }

  /** Empty where there is none. */
  get lastCommitId(): string {
    return this.#lastCommitId;
  }

  /** People have not been told of it yet (late-summaries.ts). */
  get owesSummary(): boolean {
    return this.#target.summaries.owed;
  }

  /** The end of the next turn does not put it off again. */
  hurrySummary(): void {
    this.#target.summaries.hurry();
  }

  get instanceId(): string {
    return this.instance.state.instanceId;
  }

  /**
   * One turn over all that waits; `owed`: the effects of the last commit may not be out. Fenced: this copy is stale,
   * nothing of it may be used again (T4).
   */
  async take(batch: readonly Mail[], lane: LaneWork, owed: boolean): Promise<"done" | "fenced"> {
    const { clock, announce } = this.#deps.runtime;
    const startedAt = clock.monotonic();
    lane.begin();
    // Time never runs backwards within a history, whatever the clocks of its owners say (F30).
    const now = Math.max(clock.now(), this.#lastAt);
    if (this.instance.state.next) {
      // An owner died between two executions: the next one begins before anything else happens to the instance.
      await this.#publish(this.instance.lastEffects, lane);
      if ((await this.#commitTurn([], [], now, startedAt, lane)) === "fenced") return "fenced";
    }
    let facts: Turn["events"] = [];
    let effects: Effect[] = [];
    let again = owed;
    if (this.#inherited.unvouched) {
      again ||= await stillStands(this.#deps, this.#inherited, this.instance);
      this.#inherited = { ...this.#inherited, unvouched: false };
    }
    const recalled: number[] = [];
    const owned = batch.some(({ message }) => carriesBlob(message)) ? await this.#owned(batch) : batch;
    for (const { message, delivery, aside, recalled: of } of owned) {
      if (of !== undefined) recalled.push(of);
      if (delivery && this.instance.state.applied.has(delivery.seq)) {
        if (!aside) lane.applied(delivery, message.kind === "start");
        announce({
          kind: "message.duplicate",
          instanceId: this.instanceId,
          verb: message.kind,
          seq: delivery.seq,
        });
        again ||= this.instance.isBehindLastCommit(delivery.seq);
        continue;
      }
      if (message.kind === "update") {
        const unseen = this.instance.hasUnseen && !this.instance.parked;
        if (this.instance.mustSeeFirst(message) && (facts.length > 0 || unseen)) {
          // What came before it is part of what the code decides by (T7).
          if (again) await this.#publishAgain(lane);
          again = false;
          if ((await this.#commitTurn(facts, effects, now, startedAt, lane)) === "fenced") return "fenced";
          facts = [];
          effects = [];
        }
        if (!(await this.#consider(message, facts, delivery))) continue;
      }
      if (this.instance.isAhead) this.instance = await this.#fresh();
      const accepted = this.instance.take(message, now, facts, effects);
      if (accepted.kind === "ignored") {
        again = (await this.#ignored(message, delivery, accepted, lane)) || again;
        // A look at what was parked: it stands for what the code does if it goes on now.
        if (delivery && message.kind === "wake" && this.instance.hasUnseen)
          this.instance.applied(delivery.seq);
      } else if (delivery) {
        this.instance.applied(delivery.seq);
        if (!aside) lane.applied(delivery, message.kind === "start");
      }
    }
    if (again) await this.#publishAgain(lane);
    if (facts.length > 0 || this.instance.hasUnseen) {
      const verdict = await this.#commitTurn(facts, effects, now, startedAt, lane);
      if (verdict === "fenced") return verdict;
    }
    if (recalled.length > 0) {
      await this.#sendTasks(recalled, lane);
      lane.resent(recalled);
    }
    // Whoever recorded that the code goes on again may have died before it said so.
    if (this.instance.takeResumed()) await this.#tellParkedOrNot();
    if (this.#toShow) {
      this.#toShow = false;
      await this.show();
    }
    if (this.owesSummary) {
      await this.#target.summaries.settle(this.instance.state, lane.keeps(this.instance.state) !== undefined);
    }
    return "done";
  }

  /**
   * The commit before may not have got all its effects out (T3). Its summary is written behind the commit of this turn:
   * the facts of this batch are in the state already, and in no history (T2).
   */
  async #publishAgain(lane: LaneWork): Promise<void> {
    await this.#lookAfterLane(lane);
    const before = this.instance.lastEffects;
    await this.#publish(
      before.filter(({ kind }) => kind !== "summary"),
      lane,
    );
    if (before.some(({ kind }) => kind === "summary")) this.#target.summaries.owe();
    else this.#sentCommitId = this.#lastCommitId;
    this.#inherited = nothing;
  }

  /** True where the update is to be accepted; otherwise whoever sent it is told why not, and nothing is recorded (Q2). */
  async #consider(
    update: Extract<InboxMessage, { kind: "update" }>,
    facts: Turn["events"],
    delivery: Delivery | undefined,
  ): Promise<boolean> {
    const considered = await this.instance.consider(update);
    if (considered.kind === "acceptable") return true;
    // Sent twice, and not recorded yet: it is answered behind the commit (T2).
    if (considered.kind === "known" && facts.some(({ id }) => id === considered.record.of)) return false;
    const answer =
      considered.kind === "known"
        ? await knownAnswer(this.#deps, this.instanceId, update.updateId, considered.record)
        : refusedAnswer(update.updateId, considered);
    const { bus, names } = this.#deps;
    // Refused only once it cannot come again: an owner after us might take it.
    const isSettled = considered.kind === "known" || !delivery || (await delivery.ackSync());
    if (isSettled) bus.send(names.answer(this.instanceId, update.updateId), encode(answer));
    if (considered.kind === "refused" && considered.spoiled) this.instance = await this.#fresh();
    return false;
  }

  /** As the history has it: nothing of this turn is recorded yet. */
  async #fresh(): Promise<Instance> {
    const { history, host, runaways } = this.#deps;
    const instance = new Instance(this.instanceId, host, runaways.whyNot(this.instanceId));
    await instance.load((await history.load(this.instanceId))?.commits ?? []);
    if (this.instance.isAhead) instance.takeResumed(); // told already
    return instance;
  }

  /** Before anything is decided: what cannot be copied now is tried again with the whole turn. */
  async #owned(batch: readonly Mail[]): Promise<readonly Mail[]> {
    const { payloads } = this.#deps;
    return Promise.all(
      batch.map(async (mail) => {
        const message = await adoptPayloads(payloads, this.instanceId, mail.message);
        return message === mail.message ? mail : { ...mail, message };
      }),
    );
  }

  #publish(effects: readonly Effect[], lane: LaneWork): Promise<void> {
    const { state } = this.instance;
    const due = state.next ? effects.filter(({ kind }) => kind !== "unschedule") : effects;
    return publishEffects(this.#deps, state, due, this.#target, lane);
  }

  /**
   * An execution that is over keeps its schedules until the effects of the next one's first commit are out: where a
   * local timer brought the end about, nothing else would wake whoever has to repair it (T3). Returns what takes them
   * away, where there are any.
   */
  #keepSchedules(lane: LaneWork): (() => Promise<void>) | undefined {
    const { state, lastEffects } = this.instance;
    const target = this.#target;
    const unschedules = lastEffects.filter(({ kind }) => kind === "unschedule");
    this.#target = { ...target, schedules: new SparseMap() };
    if (unschedules.length === 0) return undefined;
    return () => publishEffects(this.#deps, state, unschedules, target, lane);
  }

  /** By the queue, those still open. */
  #sendTasks(ids: readonly number[], lane: LaneWork): Promise<void> {
    const { tasks } = this.instance.state;
    const open = ids.flatMap((id) => tasks.get(id) ?? []);
    return this.#publish(
      open.map((task) => ({ kind: "task", task })),
      lane,
    );
  }

  /** The owner before us sent these by the lane: what no live worker has goes by the queue (LANE-1). */
  async #lookAfterLane(lane: LaneWork): Promise<void> {
    // Without an anchor nobody would look after it any longer; the one it was sent under is still to come.
    if (!lane.hasAnchor) return;
    const { state } = this.instance;
    const laned = this.#laned;
    this.#laned = [];
    const lost = await Promise.all(
      laned.map(async (id) => {
        const task = state.tasks.get(id);
        if (!task || task.attempt > 1 || lane.isOut(state, task)) return [];
        return (await lane.adopt(state, task)) ? [] : [id];
      }),
    );
    await this.#sendTasks(lost.flat(), lane);
  }

  async #commitTurn(
    facts: Turn["events"],
    effects: Effect[],
    now: number,
    startedAt: number,
    lane: LaneWork,
  ): Promise<"done" | "fenced"> {
    const { instance } = this;
    if (facts.length > 0 || instance.hasUnseen) {
      const turn = await instance.finish(facts, effects, now);
      if ((await this.#commit(turn, now, startedAt, lane)) === "fenced") return "fenced";
    }
    // Continue-as-new: the next execution begins with a commit of its own.
    const leftovers: (() => Promise<void>)[] = [];
    while (instance.state.next) {
      this.#deps.faultPoints.reach("continue.between_executions");
      const takeAway = this.#keepSchedules(lane);
      if (takeAway) leftovers.push(takeAway);
      const next = { facts: [] as Turn["events"], effects: [] as Effect[] };
      instance.continueAsNew(now, next.facts, next.effects);
      const turn = await instance.finish(next.facts, next.effects, now);
      if ((await this.#commit(turn, now, startedAt, lane)) === "fenced") return "fenced";
    }
    for (const takeAway of leftovers) await takeAway();
    return "done";
  }

  async #commit(turn: Turn, now: number, startedAt: number, lane: LaneWork): Promise<"done" | "fenced"> {
    const { history, runtime, faultPoints } = this.#deps;
    const { instance } = this;
    const { state } = instance;
    const changed = instance.parked !== undefined || instance.takeResumed();
    this.#target.summaries.parked = instance.parked;
    if (turn.events.length === 0) {
      if (changed) await this.#tellParkedOrNot();
      return "done";
    }
    const laned = lane.plan(state, turn.effects, now);
    const anchor = lane.standsFor?.seq;
    const commit: Commit = {
      v: 1,
      commitId: token(runtime.random),
      instanceId: this.instanceId as InstanceId,
      execution: state.execution,
      at: now,
      inbox: instance.takeInbox(anchor),
      anchor,
      lane: laned.length > 0 ? laned : undefined,
      deferred: turn.deferred ? true : undefined,
      ...(turn.events.some(isOfSecondGeneration) && { needs: 2 }),
      events: turn.events,
    };
    // Schedules are many and have short histories: none needs a stream of its own.
    const started = state.status !== "pending" && state.name !== scheduleOrchestration;
    this.#position ??= await history.place(this.instanceId, { started });
    faultPoints.reach("turn.before_append");
    const appendAt = runtime.clock.monotonic();
    const outcome = await history.append(this.#position, commit, { startsExecution: turn.startsExecution });
    if (outcome.kind === "fenced") {
      runtime.announce({ kind: "turn.fenced", instanceId: this.instanceId });
      return "fenced";
    }
    this.#position = outcome.position;
    this.#lastAt = now;
    this.#lastCommitId = commit.commitId;
    this.#inherited = nothing;
    faultPoints.reach("turn.after_append");
    const done = runtime.clock.monotonic();
    runtime.announce({
      kind: "turn.committed",
      instanceId: this.instanceId,
      execution: state.execution,
      events: turn.events.length,
      turnMs: done - startedAt,
      appendMs: done - appendAt,
      replayed: false,
    });
    const { name = "", status, execution } = state;
    if (turn.events.some((event) => event.kind === "instance.started")) {
      runtime.announce({ kind: "instance.started", instanceId: this.instanceId, name, execution });
    }
    const before = state.lastEventId - turn.events.length;
    if (before < softLimitEvents && state.lastEventId >= softLimitEvents) {
      const limit = softLimitEvents;
      runtime.announce({
        kind: "history.long",
        instanceId: this.instanceId,
        events: state.lastEventId,
        limit,
      });
    }
    if (changed) await this.#tellParkedOrNot();
    await this.#publish(turn.effects, lane);
    this.#sentCommitId = commit.commitId;
    faultPoints.reach("turn.after_effects");
    if (isEnded(state)) {
      runtime.announce({
        kind: "instance.closed",
        instanceId: this.instanceId,
        name,
        status,
        durationMs: (state.endedAt ?? now) - (state.startedAt ?? now),
        traceparent: state.traceparent,
      });
    }
    return "done";
  }

  /**
   * Set aside with its reason, or back at work: people see it, and a new deployment finds it (T6, T9). Behind the commit
   * (T2): who waits for the end would be told of one that nobody recorded.
   */
  async #tellParkedOrNot(): Promise<void> {
    const { instance } = this;
    const fault = instance.parked;
    const { announce } = this.#deps.runtime;
    this.#target.summaries.parked = fault;
    if (fault)
      announce({
        kind: "instance.parked",
        instanceId: this.instanceId,
        code: fault.code,
        message: fault.message,
      });
    else announce({ kind: "instance.resumed", instanceId: this.instanceId });
    await this.#deps.parked.set(this.instanceId, fault);
    await this.#target.summaries.write(instance.state);
  }

  /** Tells people how it stands now, whatever they were told before. */
  async show(): Promise<void> {
    const { instance } = this;
    const { status, lastEventId } = instance.state;
    this.#target.summaries.parked = instance.parked;
    // What was only asked for, and never started, is no instance.
    if (status !== "absent" || lastEventId > 0) await this.#target.summaries.write(instance.state);
    await this.#target.register.repair(instance.state);
    // Last: what cannot be shown is still to be found in the list of the parked.
    await this.#deps.parked.set(this.instanceId, instance.parked);
  }

  /** Returns whether the effects of the last commit may not be out. */
  async #ignored(
    message: InboxMessage,
    delivery: Delivery | undefined,
    accepted: Extract<Accepted, { kind: "ignored" }>,
    lane: LaneWork,
  ): Promise<boolean> {
    const { state } = this.instance;
    await answerIgnored(this.#deps, this.#target.outbox, state, message, accepted.why);
    if (!delivery) return false;
    await deadLetterIgnored(this.#deps, state, message, delivery, accepted.why);
    if (message.kind !== "wake" || !message.wake) return false;
    const { wake } = message;
    // A new deployment's look at what was parked: it may have been put right from outside.
    if (wake.of === 0) this.#toShow = true;
    // It stood for a local activity that runs now, and goes on standing for it.
    if (state.tasks.get(wake.of)?.target.kind === "local") lane.applied(delivery);
    return tellsOfDeath(this.#inherited, this.instance, wake);
  }
}
