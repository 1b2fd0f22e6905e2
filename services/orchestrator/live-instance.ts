/**
 * One instance served by this process: its mailbox, the copy in memory, its timer.
 *
 * TURN-1 Turns of one instance never overlap, and the next begins when the effects of the one before are out.
 * TURN-3 Fenced means stale: the copy in memory is dropped and the waiting messages are looked at again from history (T4).
 */
import { laneRecordingKey, needsNewerVersion, scheduleOrchestration } from "../../schemas/index.ts";
import { type Delivery, encode } from "../../shared/bus/index.ts";
import { Fault, isFault } from "../../shared/errors/index.ts";
import {
  type Asked,
  type InboxMessage,
  type Instance,
  type InstanceState,
  isEnded,
  nextDeadline,
} from "../../shared/replay/index.ts";
import { jittered, sleep, type Timer } from "../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { type LaneSeats, LaneWork } from "./lane/lane-work.ts";
import { LocalWork } from "./local/local-work.ts";
import type { Mail } from "./mail.ts";
import { AsideMail } from "./quarantine/aside-mail.ts";
import { LastingFault } from "./quarantine/lasting-fault.ts";
import { showSetAside } from "./quarantine/set-aside.ts";
import type { Question } from "./queries/queries.ts";
import { LoadedInstance } from "./turn.ts";
import { refusedAnswer } from "./updates/update-answer.ts";

export interface LiveInstanceOptions {
  /** Aborts when the partition is no longer ours. */
  signal: AbortSignal;
  /** Called when there is nothing to do; the cache may drop it then. */
  onIdle(instance: LiveInstance): void;
  /** There is something to do: it must stay. */
  onMail(instance: LiveInstance): void;
  /** Replays before every turn: for tests (T8). */
  alwaysReplay: boolean;
  laneSeats: LaneSeats;
}

/** What fails so often in a row will fail the next time too: people are told, and it is tried more seldom (T9). */
const hopeless = 4;
const longestWaitMs = 5_000;
/** Of what waits for an instance that is set aside, so much stays in the inbox and brings it to its next owner. */
const keptInPlace = 8;
const wakeUp: InboxMessage = { kind: "wake", wake: undefined };
const longestWaitSetAsideMs = 60_000;

const setAsideAnswer = ({ code, message }: Fault): Extract<Asked, { kind: "refused" }> => ({
  kind: "refused",
  code: "instance_parked",
  message: `its turns fail: ${message}`,
  details: { code },
  spoiled: false,
});

export class LiveInstance {
  readonly instanceId: string;
  readonly #deps: OrchestratorDeps;
  readonly #options: LiveInstanceOptions;
  #mailbox: Mail[] = [];
  /** Inbox sequences in the mailbox or in the running turn: a redelivery of these is noise. */
  readonly #held = new Set<number>();
  /** Wait for the end of the turn under way, or for the instance to be loaded. */
  #questions: Question[] = [];
  #loaded: LoadedInstance | undefined;
  /** Absent where nothing is out. */
  #lane: LaneWork | undefined;
  /** Absent where no local activity runs. */
  #locals: LocalWork | undefined;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #looked = false;
  /** Its turns fail one like the other: what waits for it takes no room from others in their feed (T9). */
  #setAside = false;
  /** Where in its place aside to read on, before the mailbox; absent where there is nothing to look for. */
  #asideFrom: number | undefined;
  #asideMail: AsideMail | undefined;
  /** Looks that were asked for, kept unacknowledged while something is aside. */
  #looks: Delivery[] | undefined;
  /**
   * The last commit whose effects are out, or were seen to by the rules for what another owner left; empty before the
   * first. A history that ends with another one is owed its last commit: whoever made it, this owner or one that woke
   * up late, what caused it may come to nobody again (T3).
   */
  #settled: string | undefined;
  /** The effects of the last commit of the loaded history may not be out. */
  #owed = false;

  constructor(instanceId: string, deps: OrchestratorDeps, options: LiveInstanceOptions) {
    this.instanceId = instanceId;
    this.#deps = deps;
    this.#options = options;
  }

  get idle(): boolean {
    return this.#running === undefined;
  }

  get loaded(): boolean {
    return this.#loaded !== undefined;
  }

  /** Work is out on the lane, or runs here: it must stay in memory. */
  get anchored(): boolean {
    return this.#lane?.anchor !== undefined || this.#locals !== undefined;
  }

  /** What is known of its history beside the copy in memory: it may move under an owner that has taken over. */
  get remembers(): boolean {
    return this.#settled !== undefined;
  }

  get waitsForTimer(): boolean {
    return this.#timer !== undefined;
  }

  put(mail: Mail): void {
    const seq = mail.delivery?.seq;
    if (seq !== undefined) {
      if (this.#setAside) mail.delivery?.putAside();
      if (this.#held.has(seq)) {
        if (mail.delivery) this.#lane?.redelivered(mail.delivery);
        return;
      }
      this.#held.add(seq);
      if (this.#setAside && this.#held.size > keptInPlace && !isLook(mail)) return this.#moveAside(mail);
    }
    this.#mailbox.push(mail);
    this.#options.onMail(this);
    this.#running ??= this.#work();
  }

  /** At once where it is in memory and nothing happens to it; otherwise when the turn under way is over (Q1). */
  ask(question: Question): void {
    const instance = this.#running ? undefined : this.#loaded?.askable;
    if (instance) return this.#answer(instance, question);
    this.#questions.push(question);
    this.#options.onMail(this);
    this.#running ??= this.#work();
  }

  /** A worker cannot finish what it was given by the lane. */
  recall(task: { execution: number; of: number; attempt: number }): void {
    this.#lane?.recall(task, "returned");
  }

  /** People are told of it with a turn in which nothing else may happen. */
  showNow(): void {
    this.#loaded?.hurrySummary();
    this.put({ message: wakeUp, delivery: undefined });
  }

  /** Waits for the turn under way. Nothing new is begun when the signal is aborted. */
  async settle(): Promise<void> {
    await this.#running;
  }

  /** Forgets the copy in memory; the history remembers (T8). */
  drop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#loaded = undefined;
  }

  /** Somebody else's from now on. */
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
    while (
      (this.#mailbox.length + this.#questions.length > 0 || this.#asideFrom !== undefined) &&
      !signal.aborted
    ) {
      const slot = turns.take(this);
      if (slot) await slot;
      let batch: Mail[] = [];
      try {
        if (this.#asideFrom !== undefined) batch = await this.#fromAside(this.#asideFrom);
        if (batch.length === 0) batch = this.#fromMailbox();
        // Awaited in any case: whoever began this work notes it down when the first await is reached.
        await (signal.aborted || batch.length === 0 ? undefined : this.#turn(batch));
        if (!signal.aborted) await this.#answerAll();
        turns.give(this);
        failures = 0;
        passing = undefined;
      } catch (error) {
        turns.give(this);
        // What is out need not be sent again with every try: the server does not remember it for ever.
        this.#settled = this.#loaded?.sentCommitId ?? this.#settled;
        // Not acknowledged: tried again here, from history, or by the next owner (T3).
        this.drop();
        this.#mailbox = [...batch, ...this.#mailbox];
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
        if (!this.#setAside && !signal.aborted) {
          if (passes) passing ??= new LastingFault(this.#deps, this.instanceId);
          const sick = passes
            ? await passing?.lasts()
            : fault.code === needsNewerVersion || failures >= hopeless;
          if (sick) await this.#giveUp(fault);
        }
        if (this.#setAside) await this.#refuseAll(fault);
        // What passes may be over at any time.
        const longest = this.#setAside && !passes ? longestWaitSetAsideMs : longestWaitMs;
        await sleep(runtime.clock, jittered(Math.min(longest, 50 * 2 ** failures), runtime.random), signal);
      }
    }
    this.#running = undefined;
    if (signal.aborted) this.drop();
    this.#options.onIdle(this);
  }

  /** Up to a look: what lies aside is older than what came after that was asked for (ASIDE-2). */
  #fromMailbox(): Mail[] {
    const mailbox = this.#mailbox;
    const look = mailbox.findIndex(isLook);
    const end = look < 0 ? mailbox.length : look + 1;
    this.#mailbox = end === mailbox.length ? [] : mailbox.slice(end);
    return this.#vouched(end === mailbox.length ? mailbox : mailbox.slice(0, end));
  }

  async #fromAside(from: number): Promise<Mail[]> {
    const { mails, next } = await this.#aside().read(from);
    this.#asideFrom = next > from ? next : undefined;
    if (next > from) return mails;
    for (const look of this.#looks ?? []) this.#acknowledge(look);
    this.#looks = undefined;
    return [];
  }

  #aside(): AsideMail {
    this.#asideMail ??= new AsideMail(this.#deps, this.instanceId, this.#options.signal);
    return this.#asideMail;
  }

  #moveAside(mail: Mail): void {
    const { delivery } = mail;
    if (!delivery) return;
    const onMoved = () => this.#acknowledge(delivery);
    this.#aside().move(delivery, onMoved, () => {
      this.#mailbox.push(mail);
      this.#running ??= this.#work();
    });
  }

  /**
   * Without an anchor nothing would come again of what a report by the lane leads to, if this process died on its way
   * out: its worker puts it into the inbox instead (LANE-1, T3).
   */
  #vouched(mailbox: Mail[]): Mail[] {
    if (this.#lane?.anchor || !mailbox.some(({ elsewhere }) => elsewhere)) return mailbox;
    for (const { elsewhere } of mailbox) elsewhere?.();
    return mailbox.filter(({ elsewhere }) => !elsewhere);
  }

  /** Between two turns: what the code shows is in the history. */
  async #answerAll(): Promise<void> {
    while (this.#questions.length > 0) {
      const { signal } = this.#options;
      let loaded = this.#loaded ?? (await this.#load([]));
      if (loaded.isBehind) {
        // Its code has facts to see, or its next execution to begin: that is a turn.
        await this.#turn([{ message: wakeUp, delivery: undefined }]);
        if (signal.aborted) return;
        loaded = this.#loaded ?? (await this.#load([]));
      }
      const instance = loaded.askable ?? (await loaded.withCode());
      // An answer may spoil the copy: then the next question finds another one.
      const question = this.#questions.shift();
      if (question) this.#answer(instance, question);
      if (isEnded(instance.state) || instance.parked) this.drop();
    }
  }

  #answer(instance: Instance, { name, input, answer }: Question): void {
    const asked = instance.query(name, input);
    // Built again from history when it is next needed; the timer stays.
    if (asked.kind === "refused" && asked.spoiled) this.#loaded = undefined;
    answer(asked);
  }

  /** Whoever waits for an answer is told that none will come; nothing of it is kept. */
  async #refuseAll(fault: Fault): Promise<void> {
    const refused = setAsideAnswer(fault);
    for (const { answer } of this.#questions.splice(0)) answer(refused);
    const { bus, names } = this.#deps;
    const updates = this.#mailbox.filter(({ message }) => message.kind === "update");
    this.#mailbox = this.#mailbox.filter((mail) => !updates.includes(mail));
    for (const { message, delivery } of updates) {
      if (message.kind !== "update" || !delivery) continue;
      this.#held.delete(delivery.seq);
      if (!(await delivery.ackSync())) continue;
      const { updateId } = message;
      bus.send(names.answer(this.instanceId, updateId), encode(refusedAnswer(updateId, refused)));
    }
  }

  async #giveUp(fault: Fault): Promise<void> {
    try {
      const starts = this.#mailbox.some(({ message }) => message.kind === "start");
      await showSetAside(this.#deps, this.instanceId, fault, starts);
      this.#setAside = true;
      this.#asideFrom = undefined;
      const mailbox = this.#mailbox.filter(({ aside }) => !aside);
      for (const { delivery } of mailbox) delivery?.putAside();
      this.#mailbox = mailbox.filter((mail, index) => index < keptInPlace || !mail.delivery || isLook(mail));
      for (const mail of mailbox) if (!this.#mailbox.includes(mail)) this.#moveAside(mail);
    } catch (error) {
      // Told again with the next failure.
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
      this.#lane ??= this.#newLane();
      if ((await loaded.take(batch, this.#lane, this.#owed)) === "done") break;
      this.drop();
      if (signal.aborted) return;
    }
    if (!this.#loaded) return;
    this.#owed = false;
    this.#settled = isEnded(this.#loaded.instance.state) ? undefined : this.#loaded.lastCommitId;
    if (this.#setAside) {
      await this.#loaded.show();
      this.#setAside = false;
      this.#asideFrom = 1;
    } else if (batch.some(isLook)) this.#asideFrom = 1;
    const { state, parked } = this.#loaded.instance;
    if (this.#loaded.owesSummary) this.#deps.lateSummaries.add(this);
    else this.#deps.lateSummaries.withdraw(this);
    this.#rest(this.#loaded);
    // Told to stop on the way: the effects may not be out. Whoever comes next gets the messages again and sees to it.
    if (this.#options.signal.aborted) return;
    this.#settle(batch, state);
    // Of code that must not be run, its local activities are not either (T9).
    if (parked) this.#locals?.letGo();
    else if (this.#locals || (state.tasks.size > 0 && !isEnded(state))) this.#followLocals(state);
  }

  #followLocals(state: Readonly<InstanceState>): void {
    this.#locals ??= new LocalWork(this.#deps, (report) =>
      this.put({ message: { kind: "activity", report }, delivery: undefined }),
    );
    this.#locals.follow(state);
    if (this.#locals.idle) this.#locals = undefined;
  }

  async #load(batch: readonly Mail[]): Promise<LoadedInstance> {
    const assumeNew = this.#looksNew(batch);
    const { signal } = this.#options;
    const loaded = await LoadedInstance.load(this.#deps, this.instanceId, signal, assumeNew);
    this.#loaded = loaded;
    // Nothing was looked at: a fence says only that there is a history, whose own messages tell what is owed.
    const settled = assumeNew ? undefined : this.#settled;
    if (!assumeNew) this.#settled ??= loaded.lastCommitId;
    this.#owed = settled !== undefined && settled !== loaded.lastCommitId;
    return loaded;
  }

  #settle(batch: readonly Mail[], state: Readonly<InstanceState>): void {
    const { kept, released } = this.#lane?.settle(state) ?? {};
    if (!kept) this.#lane = undefined;
    for (const { message, delivery, done } of batch) {
      done?.();
      if (!delivery || delivery === kept) continue;
      // It brings the next owner to what lies aside, until that is looked at.
      if (this.#asideFrom !== undefined && isLook({ message, delivery }))
        this.#looks = [...(this.#looks ?? []), delivery];
      else this.#acknowledge(delivery);
    }
    if (released) this.#acknowledge(released);
  }

  #acknowledge(delivery: Delivery): void {
    delivery.ack();
    this.#held.delete(delivery.seq);
  }

  #newLane(): LaneWork {
    const { names, runtime, lane } = this.#deps;
    return new LaneWork({
      instanceId: this.instanceId,
      names,
      runtime,
      lane,
      seats: this.#options.laneSeats,
      onReport: ({ workerId, report }) =>
        this.put({
          message: { kind: "activity", report },
          delivery: undefined,
          done: () => lane.recorded(workerId, laneRecordingKey(this.instanceId, report)),
          elsewhere: () => undefined, // it waits to be told that it is recorded, and not for long
        }),
      onRecalled: (of) => this.put({ message: wakeUp, delivery: undefined, recalled: of }),
    });
  }

  /**
   * A first start most likely has no history: looking for one costs a round trip, and if there is one after all, the
   * append is fenced and the next try looks.
   */
  #looksNew([first]: readonly Mail[]): boolean {
    const looked = this.#looked;
    this.#looked = true;
    return !looked && first?.message.kind === "start" && first.delivery?.deliveries === 1;
  }

  /** Between turns: arm the local timer, or let go of what will not be needed again. */
  #rest({ instance }: LoadedInstance): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    // A parked instance is tried afresh with each message: its code may have been replaced meanwhile.
    if (isEnded(instance.state) || instance.parked || instance.hasUnseen) return this.drop();
    const next = nextDeadline(instance.state);
    if (next !== undefined) {
      const wait = Math.max(0, next - this.#deps.runtime.clock.now());
      this.#timer = this.#deps.runtime.clock.after(wait, () =>
        this.put({ message: wakeUp, delivery: undefined }),
      );
    }
    // Schedules are many and mostly wait: the timer is kept, and the history read again when it fires.
    const waits = instance.state.name === scheduleOrchestration;
    if (this.#options.alwaysReplay || waits) this.#loaded = undefined;
  }
}

/** Somebody asked for a look at an instance that was parked. */
const isLook = ({ message, delivery }: Mail): boolean =>
  delivery !== undefined && message.kind === "wake" && message.wake?.of === 0;
