/**
 * One instance served by this process: its mailbox, the copy in memory, its timer.
 *
 * TURN-1 Turns of one instance never overlap, and the next begins when the effects of the one before are
 *    published.
 * TURN-3 Fenced means stale: the copy in memory is dropped, and the waiting messages are judged again from
 *    history (T4).
 */
import { flowInstance, needsNewerVersion, scheduleOrchestration } from "../../schemas/index.ts";
import { Fault, isFault } from "../../shared/errors/index.ts";
import { type Instance, type InstanceState, isEnded, nextDeadline } from "../../shared/replay/index.ts";
import { jittered, sleep, type Timer } from "../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { laneOfInstance } from "./lane/lane-of-instance.ts";
import type { LaneSeats, LaneWork } from "./lane/lane-work.ts";
import { LocalWork } from "./local/local-work.ts";
import { lostSession, type Mail, wakeUp } from "./mail.ts";
import { Mailbox } from "./mailbox.ts";
import { LastingFault } from "./quarantine/lasting-fault.ts";
import { refuseSetAside } from "./quarantine/refuse-set-aside.ts";
import { showSetAside } from "./quarantine/set-aside.ts";
import type { Question } from "./queries/queries.ts";
import { LoadedInstance } from "./turn.ts";

export interface LiveInstanceOptions {
  /** Aborts when this orchestrator no longer owns the partition. */
  signal: AbortSignal;
  /** Called when the instance has nothing to do; the cache may drop it then. */
  onIdle(instance: LiveInstance): void;
  /** Called when the instance has something to do; the cache must keep it. */
  onMail(instance: LiveInstance): void;
  /** Replays the history before every turn: for tests (T8). */
  alwaysReplay: boolean;
  laneSeats: LaneSeats;
}

/**
 * After so many failures in a row the next turn will most likely fail too: the instance is shown as parked,
 * and its turns are tried less often (T9).
 */
const failuresBeforeParking = 4;
const longestWaitMs = 5_000;
const longestWaitSetAsideMs = 60_000;
const flowInstances = flowInstance("");
/**
 * A schedule that is due sooner gets a timer in this process; the server wakes all others, up to 250 ms late.
 */
const nextTimeIsNearMs = 10_000;

export class LiveInstance {
  readonly instanceId: string;
  readonly #deps: OrchestratorDeps;
  readonly #options: LiveInstanceOptions;
  readonly #mailbox: Mailbox;
  /** Queries that wait for the running turn to end or for the instance to be loaded. */
  #questions: Question[] = [];
  #loaded: LoadedInstance | undefined;
  /** Undefined while no task of the instance is out on the lane. */
  #lane: LaneWork | undefined;
  /** Undefined while no local activity runs. */
  #locals: LocalWork | undefined;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #looked = false;
  /**
   * The last commit whose effects were published, or were repaired after another owner; empty before the
   * first commit. If the history ends with a different commit, the effects of that commit are owed: no matter
   * which owner made it, the message that caused it may never be delivered again (T3).
   */
  #settled: string | undefined;
  /** True if the effects of the last commit in the loaded history may be unpublished. */
  #owed = false;

  constructor(instanceId: string, deps: OrchestratorDeps, options: LiveInstanceOptions) {
    this.instanceId = instanceId;
    this.#deps = deps;
    this.#options = options;
    this.#mailbox = new Mailbox(instanceId, deps, options.signal, () => {
      this.#running ??= this.#work();
    });
  }

  get idle(): boolean {
    return this.#running === undefined;
  }

  get loaded(): boolean {
    return this.#loaded !== undefined;
  }

  /** True while work is out on the lane or runs in this process: the instance must stay in memory. */
  get anchored(): boolean {
    return this.#lane?.anchor !== undefined || this.#locals !== undefined;
  }

  /**
   * True if this process knows which commit was settled last. The history may have moved under an owner that
   * took over.
   */
  get remembers(): boolean {
    return this.#settled !== undefined;
  }

  get waitsForTimer(): boolean {
    return this.#timer !== undefined;
  }

  /** True if a delivery of this message waits here for its turn, or to be settled. */
  holds(seq: number): boolean {
    return this.#mailbox.holds(seq);
  }

  put(mail: Mail): void {
    const put = this.#mailbox.put(mail);
    if (put === "held" && mail.delivery && this.#lane?.redelivered(mail.delivery))
      void this.#lookAgain().catch(() => undefined); // the message comes again
    if (put !== "waits") return;
    const lost = lostSession(mail);
    // The running turn may wait for the holder's answer to a call, which will not come.
    if (lost !== undefined) this.#deps.lane.offers.sessionLost(lost);
    this.#options.onMail(this);
    this.#running ??= this.#work();
  }

  /**
   * An earlier owner's append may have been stored after this owner loaded the history: a turn on a new copy
   * finds it, and what it asked for (T3).
   */
  async #lookAgain(): Promise<void> {
    const last = (await this.#deps.history.load(this.instanceId))?.commits.at(-1);
    if (this.#running || this.#options.signal.aborted || last?.commitId === this.#settled) return;
    this.drop();
    this.put(wakeUp);
  }

  /** Answers at once if the instance is in memory and no turn runs; otherwise after the running turn (Q1). */
  ask(question: Question): void {
    const instance = this.#running ? undefined : this.#loaded?.askable;
    if (instance) return this.#answer(instance, question);
    this.#questions.push(question);
    this.#options.onMail(this);
    this.#running ??= this.#work();
  }

  /** Called when a worker cannot finish a task that it received by the lane. */
  recall(task: { execution: number; of: number; attempt: number }): void {
    this.#lane?.recall(task, "returned");
  }

  /** Publishes the instance's summary at the end of the running turn, or with a turn that may do nothing else. */
  showNow(): void {
    this.#loaded?.hurrySummary();
    if (this.idle) this.put(wakeUp);
  }

  /** Gives the instance a stream of its own for its history, with a turn that may do nothing else. */
  moveNow(): void {
    if (this.#loaded) this.put(wakeUp);
  }

  /** Waits for the running turn. No new turn begins once the signal is aborted. */
  async settle(): Promise<void> {
    await this.#running;
  }

  /** Forgets the copy in memory; the next turn rebuilds it from history (T8). */
  drop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#loaded = undefined;
  }

  /** Called when another orchestrator owns the instance from now on. */
  letGo(): void {
    this.drop();
    this.#lane?.letGo();
    this.#lane = undefined;
    this.#locals?.letGo();
    this.#locals = undefined;
  }

  async #work(): Promise<void> {
    const { runtime, turns } = this.#deps;
    const { signal } = this.#options;
    let failures = 0;
    let passing: LastingFault | undefined;
    while ((!this.#mailbox.isEmpty || this.#questions.length > 0) && !signal.aborted) {
      // Other turns wait for the keeper of their key: it needs no slot, and takes all that is put at once.
      const slot = this.instanceId.startsWith(flowInstances) ? Promise.resolve() : turns.take(this);
      if (slot) await slot;
      let batch: Mail[] = [];
      try {
        if (this.#mailbox.hasAside) batch = await this.#mailbox.popAside();
        if (batch.length === 0) batch = this.#mailbox.popWaiting(this.#lane?.anchor !== undefined);
        // Awaited even without a turn: this function must not end before its caller has stored its promise.
        await (signal.aborted || batch.length === 0 ? undefined : this.#turn(batch));
        if (!signal.aborted) await this.#answerAll();
        turns.give(this);
        failures = 0;
        passing = undefined;
      } catch (error) {
        turns.give(this);
        // Effects already published are not sent again with every try: the server's duplicate window ends.
        this.#settled = this.#loaded?.sentCommitId ?? this.#settled;
        // The messages stay unacknowledged: this owner tries again from history, or the next owner does (T3).
        this.#locals?.dropAhead();
        this.drop();
        this.#mailbox.putBack(batch);
        const fault = isFault(error)
          ? error
          : new Fault("bug", { code: "turn_failed", message: String(error), cause: error });
        runtime.announce({
          kind: "fault",
          where: `turn of ${this.instanceId}`,
          code: fault.code,
          message: fault.message,
          error,
        });
        failures++;
        const passes = fault.kind === "transient";
        if (!this.#mailbox.isSetAside && !signal.aborted) {
          if (passes) passing ??= new LastingFault(this.#deps, this.instanceId);
          const sick = passes
            ? await passing?.lasts()
            : fault.code === needsNewerVersion || failures >= failuresBeforeParking;
          if (sick) await this.#giveUp(fault);
        }
        if (this.#mailbox.isSetAside) {
          const questions = this.#questions.splice(0);
          await refuseSetAside(this.#deps, this.instanceId, fault, questions, this.#mailbox);
        }
        // A passing fault may be over at any time, so the wait stays short.
        const longest = this.#mailbox.isSetAside && !passes ? longestWaitSetAsideMs : longestWaitMs;
        await sleep(runtime.clock, jittered(Math.min(longest, 50 * 2 ** failures), runtime.random), signal);
      }
    }
    this.#running = undefined;
    if (signal.aborted) this.drop();
    this.#options.onIdle(this);
  }

  /** Answers queries between two turns, when everything the code shows is in the history. */
  async #answerAll(): Promise<void> {
    while (this.#questions.length > 0) {
      const { signal } = this.#options;
      let loaded = this.#loaded ?? (await this.#load([]));
      if (loaded.isBehind) {
        // The code has new facts to see, or the next execution has to begin: both take a turn.
        await this.#turn([wakeUp]);
        if (signal.aborted) return;
        loaded = this.#loaded ?? (await this.#load([]));
      }
      const instance = loaded.askable ?? (await loaded.withCode());
      // A query may spoil the copy in memory: the next query then gets a new one.
      const question = this.#questions.shift();
      if (question) this.#answer(instance, question);
      if (isEnded(instance.state) || instance.parked) this.drop();
    }
  }

  #answer(instance: Instance, { name, input, answer }: Question): void {
    const asked = instance.query(name, input);
    // The instance is rebuilt from history when it is next needed; its timer stays.
    if (asked.kind === "refused" && asked.spoiled) this.#loaded = undefined;
    answer(asked);
  }

  async #giveUp(fault: Fault): Promise<void> {
    try {
      await showSetAside(this.#deps, this.instanceId, fault, this.#mailbox.hasStart);
      this.#mailbox.setAside();
    } catch (error) {
      // Shown again with the next failure.
      const message = `${this.instanceId} could not be shown as parked: ${String(error)}`;
      this.#deps.runtime.announce({ kind: "fault", where: "set aside", code: "not_shown", message, error });
    }
  }

  async #turn(batch: readonly Mail[]): Promise<void> {
    const newer = batch.find((mail) => mail.newer !== undefined)?.newer;
    if (newer !== undefined) throw new Fault("bug", { code: needsNewerVersion, message: newer });
    for (;;) {
      const { signal } = this.#options;
      const loaded = this.#loaded ?? (await this.#load(batch));
      this.#lane ??= laneOfInstance(this.#deps, this.instanceId, this.#options.laneSeats, (mail) =>
        this.put(mail),
      );
      const taken = await loaded.run(batch, this.#lane, () => this.#localWork(), this.#owed);
      if (taken === "done") break;
      this.#locals?.dropAhead();
      this.drop();
      if (signal.aborted) return;
    }
    if (!this.#loaded) return;
    this.#owed = false;
    this.#settled = isEnded(this.#loaded.instance.state) ? undefined : this.#loaded.lastCommitId;
    if (this.#mailbox.isSetAside) await this.#loaded.show();
    this.#mailbox.bringBack(batch);
    const { state, parked } = this.#loaded.instance;
    const { inheritedAnchor } = this.#loaded;
    if (this.#loaded.owesSummary) this.#deps.lateSummaries.add(this);
    else this.#deps.lateSummaries.withdraw(this);
    if (this.#loaded.isYoung) this.#deps.longLived.add(this);
    else this.#deps.longLived.withdraw(this);
    this.#rest(this.#loaded);
    // This process is stopping and the effects may be unpublished. The messages are not acknowledged: the
    // next owner gets them and publishes the effects.
    if (this.#options.signal.aborted) return;
    this.#settle(batch, state, inheritedAnchor);
    // If the code must not run, its local activities must not run either (T9).
    if (parked) this.#locals?.letGo();
    else if (this.#locals || (state.tasks.size > 0 && !isEnded(state))) this.#followLocals(state);
  }

  #followLocals(state: Readonly<InstanceState>): void {
    this.#localWork().follow(state);
    if (this.#locals?.idle) this.#locals = undefined;
  }

  #localWork(): LocalWork {
    this.#locals ??= new LocalWork(this.#deps, (report) =>
      this.put({ message: { kind: "activity", report }, delivery: undefined }),
    );
    return this.#locals;
  }

  async #load(batch: readonly Mail[]): Promise<LoadedInstance> {
    const assumeNew = this.#looksNew(batch);
    const { signal } = this.#options;
    const loaded = await LoadedInstance.load(this.#deps, this.instanceId, signal, {
      assumeNew,
      toAnswer: batch.length === 0,
    });
    this.#loaded = loaded;
    // No history was looked for. If there is one, the append is fenced, and the unacknowledged messages of
    // its last commit show what is owed.
    const settled = assumeNew ? undefined : this.#settled;
    if (!assumeNew) this.#settled ??= loaded.lastCommitId;
    this.#owed = settled !== undefined && settled !== loaded.lastCommitId;
    return loaded;
  }

  #settle(batch: readonly Mail[], state: Readonly<InstanceState>, inherited: number | undefined): void {
    const { kept, released } = this.#lane?.settle(state, inherited) ?? {};
    if (!kept) this.#lane = undefined;
    this.#mailbox.settle(batch, kept);
    if (released) this.#mailbox.acknowledge(released);
  }

  /**
   * A first start most likely has no history, and looking for one costs a round trip. If there is a history
   * after all, the append is fenced and the next try loads it.
   */
  #looksNew([first]: readonly Mail[]): boolean {
    const looked = this.#looked;
    this.#looked = true;
    return !looked && first?.message.kind === "start" && first.delivery?.deliveries === 1;
  }

  /** Between turns: sets the local timer, or drops a copy that is not needed again. */
  #rest({ instance }: LoadedInstance): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    // A parked instance is loaded afresh for each message: its code may have been replaced meanwhile.
    if (isEnded(instance.state) || instance.parked || instance.hasUnseen) return this.drop();
    const next = nextDeadline(instance.state);
    const wait = Math.max(0, (next ?? 0) - this.#deps.runtime.clock.now());
    const isSchedule = instance.state.name === scheduleOrchestration;
    if (isSchedule && (next === undefined || wait > nextTimeIsNearMs)) return this.#leaveToServer();
    if (next !== undefined) {
      this.#timer = this.#deps.runtime.clock.after(wait, () => this.put(wakeUp));
    }
    if (this.#options.alwaysReplay || isSchedule) this.#loaded = undefined;
  }

  /**
   * Schedules are many and mostly wait, so they leave memory between turns. The durable schedule of the next
   * time wakes the instance, as it wakes any instance that left the cache (T8). That wake is a message in the
   * inbox, so this process need not remember the last commit.
   */
  #leaveToServer(): void {
    this.#loaded = undefined;
    this.#settled = undefined;
  }
}
