/**
 * An instance in memory with what it needs to take turns: its place in history, and where its effects go.
 *
 * TURN-2 A message is acknowledged after the commit it caused and that commit's effects (T2), or when it
 *    caused none: `run` resolves when both are done.
 * TURN-4 A message is called late, fenced or unknown, and an update is refused, only by a copy that has the
 *    last commit. Another orchestrator may have taken the partition over without this one knowing it: then
 *    the message may report what that owner asked for, and no append of this turn would be fenced.
 */
import { type Commit, flowOrchestration } from "../../schemas/index.ts";
import type { Delivery } from "../../shared/bus/index.ts";
import type { Position } from "../../shared/history/index.ts";
import {
  type Accepted,
  deadlineOf,
  type Effect,
  type InboxMessage,
  type Instance,
  isEnded,
  type Turn,
} from "../../shared/replay/index.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { ignore } from "./ignored/ignore.ts";
import type { LaneWork } from "./lane/lane-work.ts";
import type { LocalWork } from "./local/local-work.ts";
import { runAhead } from "./local/run-ahead.ts";
import type { Mail } from "./mail.ts";
import { InstancePublisher } from "./publishing/instance-publisher.ts";
import { timerFiredBy } from "./publishing/schedule-effects.ts";
import { showAgain, showParked } from "./quarantine/show-parked.ts";
import { adoptAll } from "./turn/adopt-payloads.ts";
import { announceClosed, announceCommitted } from "./turn/announce-turn.ts";
import { commitOf } from "./turn/commit-of-turn.ts";
import { endingDelayed } from "./turn/delayed-start.ts";
import { EarlierIds } from "./turn/earlier-ids.ts";
import { HistoryPlace } from "./turn/history-place.ts";
import { copyWithCode, emptyInstance, freshCopy } from "./turn/instance-copies.ts";
import type { OpenTurn } from "./turn/open-turn.ts";
import {
  nothing,
  type PredecessorCommit,
  predecessorCommit,
  stillStands,
} from "./turn/predecessor-commit.ts";
import { answerUpdate, considerUpdate, type Update } from "./updates/consider-update.ts";

interface Loaded {
  instance: Instance;
  position: Position | undefined;
  publisher: InstancePublisher;
  /** Commits of the present execution. */
  commits: readonly Commit[];
}

export class LoadedInstance {
  /** Replaced by a fresh copy when a query or an update spoils it. */
  instance: Instance;
  readonly #deps: OrchestratorDeps;
  readonly #publisher: InstancePublisher;
  readonly #place: HistoryPlace;
  #lastAt: number;
  /** Tasks that an earlier owner sent, or meant to send, by the lane. */
  #laned: readonly number[];
  /** The last commit, if an earlier owner made it; that owner may have died before publishing its effects. */
  #inherited: PredecessorCommit;
  /** Inbox sequence of the message that stands for the last commit, if an earlier owner made that commit. */
  #inheritedAnchor: number | undefined;
  /** Id of the last commit, by this owner or an earlier one. */
  #lastCommitId: string;
  /** The last commit whose effects this copy has published. */
  #sentCommitId: string | undefined;
  /** The commits of an ended instance: its code runs only to answer queries. */
  readonly #over: readonly Commit[] | undefined;
  readonly #earlier: EarlierIds;
  /** True if the instance's summary must be published at the end of the turn. */
  #toShow = false;
  /** True as long as nothing was awaited since this copy was known to have the last commit, but its own turn. */
  #hasLastCommit = true;

  private constructor(deps: OrchestratorDeps, { instance, position, publisher, commits }: Loaded) {
    const last = commits.at(-1);
    this.instance = instance;
    this.#over = isEnded(instance.state) ? commits : undefined;
    this.#deps = deps;
    this.#earlier = new EarlierIds(deps.history);
    this.#publisher = publisher;
    this.#place = new HistoryPlace(deps, position);
    this.#lastAt = last?.at ?? 0;
    this.#laned = last?.lane ?? [];
    this.#lastCommitId = last?.commitId ?? "";
    this.#inherited = predecessorCommit(commits);
    this.#inheritedAnchor = last?.anchor;
  }

  /**
   * `assumeNew`: do not look for a history. If there is one, the first append is fenced. `toAnswer`: the code runs also
   * if the instance has ended, because a query waits for it.
   */
  static async load(
    deps: OrchestratorDeps,
    instanceId: string,
    signal: AbortSignal,
    { assumeNew, toAnswer }: { assumeNew: boolean; toAnswer: boolean },
  ): Promise<LoadedInstance> {
    const { clock, announce } = deps.runtime;
    const startedAt = clock.monotonic();
    const history = assumeNew ? undefined : await deps.history.load(instanceId);
    const last = history?.commits.at(-1);
    const instance = emptyInstance(deps, instanceId);
    const shown = !last ? "none" : last.anchor === undefined ? "some" : "anchored";
    const publisher = new InstancePublisher(deps, signal, shown);
    if (history) {
      await instance.load(history.commits, { check: toAnswer });
      publisher.summaries.parked = instance.parked;
      const events = history.commits.reduce((sum, commit) => sum + commit.events.length, 0);
      announce({ kind: "instance.loaded", instanceId, events, ms: clock.monotonic() - startedAt });
    }
    const { position, commits = [] } = history ?? {};
    return new LoadedInstance(deps, { instance, position, publisher, commits });
  }

  /** Undefined until this copy has published a commit's effects. */
  get sentCommitId(): string | undefined {
    return this.#sentCommitId;
  }

  /** The instance if its code can answer queries between two turns, else undefined. */
  get askable(): Instance | undefined {
    const { instance } = this;
    return instance.hasCode && !this.isBehind ? instance : undefined;
  }

  /** True if recorded facts wait to be shown to the code, and the code may run. */
  get isBehind(): boolean {
    const { parked, hasUnseen, state } = this.instance;
    return !parked && (hasUnseen || state.next !== undefined);
  }

  /** A copy for queries alone: of an ended instance only the state was loaded. */
  withCode(): Promise<Instance> {
    return copyWithCode(this.#deps, this.instance, this.#over);
  }

  /** Kept until this owner has made a commit of its own, which fences all earlier owners (T4). */
  get inheritedAnchor(): number | undefined {
    return this.#inheritedAnchor;
  }

  /** Empty string if the history has no commit. */
  get lastCommitId(): string {
    return this.#lastCommitId;
  }

  /** True if the instance gets a stream of its own when it has run for a while. */
  get isYoung(): boolean {
    return this.#place.isYoung(this.instance);
  }

  /** True if the summary of the last turns is not published yet (late-summaries.ts). */
  get owesSummary(): boolean {
    return this.#publisher.summaries.owed;
  }

  /** Makes the next turn publish the summary instead of postponing it again. */
  hurrySummary(): void {
    this.#publisher.summaries.hurry();
  }

  get instanceId(): string {
    return this.instance.state.instanceId;
  }

  /**
   * Runs one turn over all waiting messages. `owed`: the effects of the last commit may be unpublished.
   * "fenced": this copy is stale and must not be used again (T4).
   */
  async run(
    batch: readonly Mail[],
    lane: LaneWork,
    locals: () => LocalWork,
    owed: boolean,
  ): Promise<"done" | "fenced"> {
    // 1. Begin. Time never runs backwards within a history, whatever the clocks of its owners say (F30).
    const { clock } = this.#deps.runtime;
    const now = Math.max(clock.now(), this.#lastAt);
    const turn: OpenTurn = {
      ...{ now, startedAt: clock.monotonic(), lane, locals, owed },
      ...{ facts: [], effects: [], recalled: [] },
    };
    lane.begin();
    // 2. Repair what a dead owner left undone: an execution to begin, effects without a message (T3).
    if ((await this.#beginNextExecution(turn)) === "fenced") return "fenced";
    await this.#askAfterPredecessor(turn);
    // 3. Accept. Each message becomes facts, in inbox order (T7), or is ignored.
    for (const mail of await adoptAll(this.#deps.payloads, this.instanceId, batch)) {
      if ((await this.#accept(mail, turn)) === "fenced") return "fenced";
    }
    if (turn.owed) await this.#publishAgain(lane);
    // 4. Run the code, 5. commit (T1), 6. publish (T2); again for each execution that continues as new.
    if ((await this.#commitTurn(turn)) === "fenced") return "fenced";
    // 7. Settle: send recalled tasks by the queue, publish the summary, and move what has run for long.
    await this.#settle(turn);
    await this.#place.moveIfLongLived(this.instance, now);
    this.#hasLastCommit = false;
    return "done";
  }

  async #beginNextExecution(turn: OpenTurn): Promise<"done" | "fenced"> {
    if (!this.instance.state.next) return "done";
    await this.#publisher.publish(this.instance.state, this.instance.lastEffects, turn.lane);
    return this.#commitTurn(turn);
  }

  async #askAfterPredecessor(turn: OpenTurn): Promise<void> {
    if (!this.#inherited.unvouched) return;
    // Plain messages from other orchestrators to a keeper of flow control are never redelivered (FLOW-5).
    turn.owed ||= this.instance.state.name === flowOrchestration;
    turn.owed ||= await stillStands(this.#deps, this.#inherited, this.instance);
    this.#inherited = { ...this.#inherited, unvouched: false };
  }

  async #accept({ delivery, aside, recalled, ...sent }: Mail, turn: OpenTurn): Promise<"done" | "fenced"> {
    const { lane } = turn;
    const begun = this.instance.state.status !== "absent" && this.instance.state.status !== "pending";
    const message = begun ? sent.message : await endingDelayed(this.#deps, this.instance.state, sent.message);
    if (recalled !== undefined) turn.recalled.push(recalled);
    if (delivery && this.instance.state.applied.has(delivery.seq)) {
      this.#acceptTwice(message, delivery, aside === true, turn);
      return "done";
    }
    if (message.kind === "update") {
      const unseen = this.instance.hasUnseen && !this.instance.parked;
      if (this.instance.mustSeeFirst(message) && (turn.facts.length > 0 || unseen)) {
        // Earlier messages are part of what the code decides by (T7).
        if (turn.owed) await this.#publishAgain(lane);
        turn.owed = false;
        if ((await this.#commitTurn(turn)) === "fenced") return "fenced";
      }
      const considered = await this.#consider(message, turn.facts, delivery);
      if (considered !== "acceptable") return considered;
    }
    if (this.instance.isAhead) this.instance = await freshCopy(this.#deps, this.instance);
    if (delivery) await this.#scheduleAgainIfEarly(message, delivery, turn);
    const firedOf = delivery && timerFiredBy(message, this.instance.state);
    const isRepeated = message.kind === "signal" && (await this.#earlier.has(message, this.instance.state));
    const accepted: Accepted = isRepeated
      ? { kind: "ignored", why: "repeated" }
      : this.instance.accept(message, turn.now, turn.facts, turn.effects);
    // The server removed the schedule when it fired: there is nothing left to remove.
    if (firedOf !== undefined)
      turn.effects = turn.effects.filter((effect) => effect.kind !== "unschedule" || effect.of !== firedOf);
    if (accepted.kind === "ignored") {
      if (delivery && mayBeWrong(accepted.why) && !(await this.#askForLastCommit())) return "fenced";
      const { outbox } = this.#publisher.target;
      const { look, owed } = await ignore(this.#deps, outbox, this.instance, accepted.why, this.#inherited, {
        ...{ message, delivery, lane },
      });
      this.#toShow ||= look;
      turn.owed ||= owed;
      // A look at a parked instance: this message stands for what the code does if it resumes now.
      if (delivery && message.kind === "wake" && this.instance.hasUnseen) this.instance.applied(delivery.seq);
    } else if (delivery) {
      this.instance.applied(delivery.seq);
      if (!aside) lane.applied(delivery, message.kind === "start");
    }
    return "done";
  }

  /** Returns false if another owner has made a commit that this copy does not have (TURN-4). */
  async #askForLastCommit(): Promise<boolean> {
    this.#hasLastCommit ||= await this.#place.hasLastCommit(this.instanceId);
    if (!this.#hasLastCommit)
      this.#deps.runtime.announce({ kind: "turn.fenced", instanceId: this.instanceId });
    return this.#hasLastCommit;
  }

  /**
   * The clock of a server may be set back, or its successor's be behind: a wake may come before its time, and its
   * schedule is gone with it (CLOCK-1).
   */
  async #scheduleAgainIfEarly(message: InboxMessage, { seq }: Delivery, turn: OpenTurn): Promise<void> {
    const { state } = this.instance;
    if (message.kind !== "wake" || message.wake?.execution !== state.execution) return;
    const { of } = message.wake;
    const at = state.tasks.get(of)?.target.kind === "local" ? undefined : deadlineOf(state, of);
    if (at === undefined || at <= turn.now) return;
    await this.#publisher.scheduleAgain(state, { of, at, wakeSeq: seq }, turn.lane);
  }

  #acceptTwice(message: InboxMessage, delivery: Delivery, aside: boolean, turn: OpenTurn): void {
    if (!aside) turn.lane.applied(delivery, message.kind === "start");
    const { instanceId } = this;
    const { seq } = delivery;
    this.#deps.runtime.announce({ kind: "message.duplicate", instanceId, verb: message.kind, seq });
    turn.owed ||= this.instance.isBehindLastCommit(seq);
  }

  async #settle({ recalled, lane }: OpenTurn): Promise<void> {
    if (recalled.length > 0) {
      await this.#publisher.sendTasks(this.instance.state, recalled, lane);
      lane.resent(recalled);
    }
    // An earlier owner may have recorded that the code resumes and died before it announced that.
    if (this.instance.popResumed()) await showParked(this.#deps, this.#publisher.target, this.instance);
    if (this.#toShow) {
      this.#toShow = false;
      await this.show();
    }
    if (!this.owesSummary) return;
    const { state } = this.instance;
    const vouched = lane.keeps(state, this.#inheritedAnchor) !== undefined;
    await this.#publisher.summaries.settle(state, vouched);
  }

  /**
   * Publishes the effects of the last commit again, because some may be missing (T3). Its summary follows
   * after this turn's commit: the state already contains facts of this batch, not yet in the history (T2).
   */
  async #publishAgain(lane: LaneWork): Promise<void> {
    this.#deps.runtime.announce({ kind: "commit.owed", instanceId: this.instanceId });
    const { state, lastEffects: before } = this.instance;
    // Without an anchor no owner would look after these tasks; their own anchor is still to be redelivered.
    if (lane.hasAnchor) {
      const laned = this.#laned;
      this.#laned = [];
      await this.#publisher.sendLost(state, laned, lane);
    }
    await this.#publisher.publish(
      state,
      before.filter(({ kind }) => kind !== "summary"),
      lane,
    );
    if (before.some(({ kind }) => kind === "summary")) this.#publisher.summaries.owe();
    else this.#sentCommitId = this.#lastCommitId;
    this.#inherited = nothing;
  }

  /** `done`: the client has its answer, and nothing is recorded (Q2). */
  async #consider(
    update: Update,
    facts: Turn["events"],
    delivery: Delivery | undefined,
  ): Promise<"acceptable" | "done" | "fenced"> {
    const considered = await considerUpdate(this.instance, this.#earlier, update);
    if (considered.kind === "acceptable") return "acceptable";
    if (considered.kind === "refused" && !(await this.#askForLastCommit())) return "fenced";
    await answerUpdate(this.#deps, this.instanceId, update, considered, facts, delivery);
    if (considered.kind === "refused" && considered.spoiled)
      this.instance = await freshCopy(this.#deps, this.instance);
    return "done";
  }

  async #commitTurn(turn: OpenTurn): Promise<"done" | "fenced"> {
    const { instance } = this;
    const { now, lane, facts, effects } = turn;
    turn.facts = [];
    turn.effects = [];
    if (facts.length > 0 || instance.hasUnseen) {
      if ((await this.#runAndCommit(turn, facts, effects)) === "fenced") return "fenced";
    }
    // Continue-as-new: the next execution begins with a commit of its own.
    const removals: (() => Promise<void>)[] = [];
    while (instance.state.next) {
      this.#deps.faultPoints.reach("continue.between_executions");
      const removeSchedules = this.#publisher.keepSchedules(instance, lane);
      if (removeSchedules) removals.push(removeSchedules);
      const next = { facts: [] as Turn["events"], effects: [] as Effect[] };
      instance.continueAsNew(now, next.facts, next.effects);
      if ((await this.#runAndCommit(turn, next.facts, next.effects)) === "fenced") return "fenced";
    }
    for (const removeSchedules of removals) await removeSchedules();
    return "done";
  }

  async #runAndCommit(open: OpenTurn, facts: Turn["events"], effects: Effect[]): Promise<"done" | "fenced"> {
    const turn = await this.instance.finish(facts, effects, open.now);
    await runAhead(this.#deps, this.instance, turn, open.now, open.lane, open.locals);
    return this.#commit(turn, open);
  }

  async #commit(turn: Turn, { now, startedAt, lane }: OpenTurn): Promise<"done" | "fenced"> {
    const { history, runtime, faultPoints } = this.#deps;
    const { instance } = this;
    const { state } = instance;
    const changed = instance.parked !== undefined || instance.popResumed();
    this.#publisher.summaries.parked = instance.parked;
    if (turn.events.length === 0) {
      if (changed) await showParked(this.#deps, this.#publisher.target, this.instance);
      return "done";
    }
    const laned = lane.plan(state, turn.effects, now);
    const commit = commitOf(runtime.random, instance, turn, laned, now, lane.standsFor?.seq);
    const position = await this.#place.of(instance);
    faultPoints.reach("turn.before_append");
    // T3: this owner gave the partition up and may have left the last commit's effects unpublished. A commit
    // on top of that one would hide this from the next owner.
    const { signal } = this.#publisher;
    if (signal.aborted) return "fenced";
    const appendAt = runtime.clock.monotonic();
    const { startsExecution } = turn;
    const outcome = await history.append(position, commit, { startsExecution, signal });
    if (outcome.kind === "fenced") {
      runtime.announce({ kind: "turn.fenced", instanceId: this.instanceId });
      return "fenced";
    }
    this.#place.movedTo(outcome.position);
    this.#lastAt = now;
    this.#lastCommitId = commit.commitId;
    this.#inherited = nothing;
    this.#inheritedAnchor = undefined;
    faultPoints.reach("turn.after_append");
    announceCommitted(runtime, state, turn, { startedAt, appendAt });
    if (changed) await showParked(this.#deps, this.#publisher.target, this.instance);
    await this.#publisher.publish(state, turn.effects, lane);
    this.#sentCommitId = commit.commitId;
    faultPoints.reach("turn.after_effects");
    if (isEnded(state)) announceClosed(runtime, state, now);
    return "done";
  }

  show(): Promise<void> {
    return showAgain(this.#deps, this.#publisher.target, this.instance);
  }
}

/** True for what a commit that is missing here would change; an end and a signal's id stay what they are. */
const mayBeWrong = (why: Extract<Accepted, { kind: "ignored" }>["why"]): boolean =>
  why === "late" || why === "fenced" || why === "unknown";
