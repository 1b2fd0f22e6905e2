/**
 * One instance served by this process: its mailbox, its turns, its timer.
 *
 * O1 Turns of one instance never overlap, and the next begins when the effects of the one before are out.
 * O2 A message is acknowledged after the commit it caused and that commit's effects (T2), or when it caused none.
 * O3 Fenced means stale: the copy in memory is dropped and the waiting messages are looked at again from history (T4).
 */
import type { Commit, InstanceId } from "../../schemas/index.ts";
import { bury, type Delivery } from "../../shared/bus/index.ts";
import { Fault, isFault } from "../../shared/errors/index.ts";
import type { Position } from "../../shared/history/index.ts";
import {
  type Accepted,
  type Effect,
  type InboxMessage,
  Instance,
  isEnded,
  nextDeadline,
  type Turn,
} from "../../shared/replay/index.ts";
import { jittered, sleep, type Timer, token } from "../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { type EffectTarget, publishEffects } from "./effects.ts";
import { SessionRegister } from "./session-register.ts";
import { answerStray } from "./strays.ts";
import { Summaries } from "./summaries.ts";

export interface Mail {
  message: InboxMessage;
  /** Absent for what this process tells itself: a local timer. */
  delivery: Delivery | undefined;
}

interface Loaded {
  instance: Instance;
  position: Position | undefined;
  target: EffectTarget;
  lastAt: number;
}

export interface LiveInstanceOptions {
  /** Aborts when the partition is no longer ours. */
  signal: AbortSignal;
  /** Called when there is nothing to do; the cache may drop it then. */
  onIdle(instance: LiveInstance): void;
  /** Replays before every turn: for tests (T8). */
  alwaysReplay: boolean;
}

export class LiveInstance {
  readonly instanceId: string;
  readonly #deps: OrchestratorDeps;
  readonly #options: LiveInstanceOptions;
  #mailbox: Mail[] = [];
  /** Inbox sequences in the mailbox or in the running turn: a redelivery of these is noise. */
  readonly #held = new Set<number>();
  #loaded: Loaded | undefined;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #looked = false;

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

  get waitsForTimer(): boolean {
    return this.#timer !== undefined;
  }

  put(mail: Mail): void {
    const seq = mail.delivery?.seq;
    if (seq !== undefined) {
      if (this.#held.has(seq)) return;
      this.#held.add(seq);
    }
    this.#mailbox.push(mail);
    this.#running ??= this.#work();
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

  async #work(): Promise<void> {
    const { runtime } = this.#deps;
    const { signal } = this.#options;
    let failures = 0;
    while (this.#mailbox.length > 0 && !signal.aborted) {
      const batch = this.#mailbox;
      this.#mailbox = [];
      try {
        await this.#turn(batch);
        failures = 0;
      } catch (error) {
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
        await sleep(runtime.clock, jittered(Math.min(5000, 100 * 2 ** failures++), runtime.random), signal);
      }
    }
    this.#running = undefined;
    if (signal.aborted) this.drop();
    this.#options.onIdle(this);
  }

  async #turn(batch: readonly Mail[]): Promise<void> {
    for (;;) {
      const loaded = (this.#loaded ??= await this.#load(this.#looksNew(batch)));
      const verdict = await this.#take(loaded, batch);
      if (verdict === "fenced") {
        this.drop();
        if (this.#options.signal.aborted) return;
        continue;
      }
      break;
    }
    // Told to stop on the way: the effects may not be out. Whoever comes next gets the messages again and sees to it.
    if (this.#options.signal.aborted) return;
    for (const { delivery } of batch) {
      if (!delivery) continue;
      delivery.ack();
      this.#held.delete(delivery.seq);
    }
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

  async #load(assumeNew: boolean): Promise<Loaded> {
    const { clock, announce } = this.#deps.runtime;
    const startedAt = clock.monotonic();
    const history = assumeNew ? undefined : await this.#deps.history.load(this.instanceId);
    const instance = new Instance(
      this.instanceId,
      this.#deps.host,
      this.#deps.runaways.whyNot(this.instanceId),
    );
    const outbox = { bus: this.#deps.bus, runtime: this.#deps.runtime, signal: this.#options.signal };
    const target: EffectTarget = {
      outbox,
      register: new SessionRegister(this.#deps, outbox),
      summaries: new Summaries(this.#deps, { fresh: history === undefined }),
      schedules: new Map(),
    };
    if (history) {
      await instance.load(history.commits);
      const events = history.commits.reduce((sum, commit) => sum + commit.events.length, 0);
      announce({
        kind: "instance.loaded",
        instanceId: this.instanceId,
        events,
        ms: clock.monotonic() - startedAt,
      });
    }
    return { instance, position: history?.position, target, lastAt: history?.commits.at(-1)?.at ?? 0 };
  }

  async #take(loaded: Loaded, batch: readonly Mail[]): Promise<"done" | "fenced"> {
    const { clock, announce } = this.#deps.runtime;
    const { instance } = loaded;
    const startedAt = clock.monotonic();
    // Time never runs backwards within a history, whatever the clocks of its owners say (F30).
    const now = Math.max(clock.now(), loaded.lastAt);
    if (instance.state.next) {
      // An owner died between two executions: the next one begins before anything else happens to the instance.
      await publishEffects(this.#deps, instance.state, instance.lastEffects, loaded.target);
      if ((await this.#commitTurn(loaded, [], [], now, startedAt)) === "fenced") return "fenced";
    }
    const facts: Turn["events"] = [];
    const effects: Effect[] = [];
    let again = false;
    for (const { message, delivery } of batch) {
      if (delivery && instance.state.applied.has(delivery.seq)) {
        announce({
          kind: "message.duplicate",
          instanceId: this.instanceId,
          verb: message.kind,
          seq: delivery.seq,
        });
        again ||= instance.isBehindLastCommit(delivery.seq);
        continue;
      }
      const accepted = instance.take(message, now, facts, effects);
      if (accepted.kind === "ignored")
        again = (await this.#ignored(loaded, message, delivery, accepted)) || again;
      else if (delivery) instance.applied(delivery.seq);
    }
    // The commit before may not have got all its effects out (T3).
    if (again) await publishEffects(this.#deps, instance.state, instance.lastEffects, loaded.target);
    if (facts.length > 0 || instance.hasUnseen) {
      const verdict = await this.#commitTurn(loaded, facts, effects, now, startedAt);
      if (verdict === "fenced") return verdict;
    }
    this.#rest(loaded);
    return "done";
  }

  async #commitTurn(
    loaded: Loaded,
    facts: Turn["events"],
    effects: Effect[],
    now: number,
    startedAt: number,
  ): Promise<"done" | "fenced"> {
    const { instance } = loaded;
    if (facts.length > 0 || instance.hasUnseen) {
      const turn = await instance.finish(facts, effects, now);
      if ((await this.#commit(loaded, turn, now, startedAt)) === "fenced") return "fenced";
    }
    // Continue-as-new: the next execution begins with a commit of its own.
    while (instance.state.next) {
      this.#deps.faultPoints.reach("continue.between_executions");
      const next = { facts: [] as Turn["events"], effects: [] as Effect[] };
      instance.continueAsNew(now, next.facts, next.effects);
      const turn = await instance.finish(next.facts, next.effects, now);
      if ((await this.#commit(loaded, turn, now, startedAt)) === "fenced") return "fenced";
    }
    return "done";
  }

  async #commit(loaded: Loaded, turn: Turn, now: number, startedAt: number): Promise<"done" | "fenced"> {
    const { history, runtime, faultPoints } = this.#deps;
    const { instance, target } = loaded;
    const { state } = instance;
    await this.#parkedOrNot(loaded);
    if (turn.events.length === 0) return "done";
    const commit: Commit = {
      v: 1,
      commitId: token(runtime.random),
      instanceId: this.instanceId as InstanceId,
      execution: state.execution,
      at: now,
      inbox: instance.takeInbox(),
      ...(turn.deferred ? { deferred: true as const } : {}),
      events: turn.events,
    };
    loaded.position ??= await history.place(this.instanceId);
    faultPoints.reach("turn.before_append");
    const appendAt = runtime.clock.monotonic();
    const outcome = await history.append(loaded.position, commit, { startsExecution: turn.startsExecution });
    if (outcome.kind === "fenced") {
      runtime.announce({ kind: "turn.fenced", instanceId: this.instanceId });
      return "fenced";
    }
    loaded.position = outcome.position;
    loaded.lastAt = now;
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
    await publishEffects(this.#deps, state, turn.effects, target);
    faultPoints.reach("turn.after_effects");
    if (isEnded(state)) {
      const durationMs = (state.endedAt ?? now) - (state.startedAt ?? now);
      runtime.announce({ kind: "instance.closed", instanceId: this.instanceId, name, status, durationMs });
    }
    return "done";
  }

  /** Set aside with its reason, or back at work: people see it, and a new deployment finds it (T6, T9). */
  async #parkedOrNot(loaded: Loaded): Promise<void> {
    const { instance, target } = loaded;
    const fault = instance.parked;
    if (!fault && !instance.takeResumed()) return;
    const { announce } = this.#deps.runtime;
    target.summaries.parked = fault;
    if (fault)
      announce({
        kind: "instance.parked",
        instanceId: this.instanceId,
        code: fault.code,
        message: fault.message,
      });
    else announce({ kind: "instance.resumed", instanceId: this.instanceId });
    await this.#deps.parked.set(this.instanceId, fault);
    await target.summaries.write(instance.state);
  }

  async #ignored(
    loaded: Loaded,
    message: InboxMessage,
    delivery: Delivery | undefined,
    accepted: Extract<Accepted, { kind: "ignored" }>,
  ): Promise<boolean> {
    const { runtime } = this.#deps;
    const { state } = loaded.instance;
    await answerStray(this.#deps, loaded.target.outbox, state, message, accepted.why);
    if (message.kind === "signal" && delivery) {
      const why = `instance ${this.instanceId} has ended (${state.status})`;
      runtime.announce({ kind: "signal.unheard", instanceId: this.instanceId, name: message.name, why });
      await bury(this.#deps, delivery, {
        what: "signal",
        id: this.instanceId,
        code: "instance_ended",
        message: why,
      });
    }
    // A schedule the last commit was to take away or replace fired all the same: that turn may have died on its way
    // out (T3).
    const of = message.kind === "wake" ? message.wake?.of : undefined;
    return loaded.instance.lastEffects.some(
      (effect) => (effect.kind === "unschedule" || effect.kind === "schedule") && effect.of === of,
    );
  }

  /** Between turns: arm the local timer, or let go of what will not be needed again. */
  #rest(loaded: Loaded): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { instance } = loaded;
    // A parked instance is tried afresh with each message: its code may have been replaced meanwhile.
    if (isEnded(instance.state) || instance.parked || instance.hasUnseen) return this.drop();
    const next = nextDeadline(instance.state);
    if (next !== undefined) {
      const wait = Math.max(0, next - this.#deps.runtime.clock.now());
      this.#timer = this.#deps.runtime.clock.after(wait, () =>
        this.put({ message: { kind: "wake", wake: undefined }, delivery: undefined }),
      );
    }
    if (this.#options.alwaysReplay) this.#loaded = undefined;
  }
}
