/**
 * One session held by this worker under one epoch: from the won claim to the released lease. State, queue and timers
 * belong to it and end with it (S3).
 *
 * A1 Nothing is told under a right that is over (S7): the lease is asked before every report.
 * A2 `shutdown` runs at most once, and never while other code of the session runs.
 * A3 It ends once; the first reason wins. Whoever removed the lease tells the instance, so it hears of it once.
 */
import type { Attachment as Holder, SessionClaim, SessionWork, WorkerInfo } from "../../../schemas/index.ts";
import type { AnySession, SessionView } from "../../../shared/definitions/index.ts";
import { TimeoutError, toFailure } from "../../../shared/errors/index.ts";
import type { Lease, LossWhy } from "../../../shared/leases/index.ts";
import type { Timer } from "../../../shared/runtime/index.ts";
import type { RunHooks, SessionHooks } from "../hosts/index.ts";
import { type ModelFacts, stateKey } from "../hosts/index.ts";
import { Calls } from "./calls.ts";
import type { Place } from "./capacity.ts";
import { abortReason, describeEnding, type Ending, isPlanned } from "./ending.ts";
import { EventDelivery } from "./event-delivery.ts";
import { letGo, letGoUnmade } from "./let-go.ts";
import { Saver } from "./saver.ts";
import { idleTimeoutOf } from "./session-options.ts";
import { Snapshots } from "./snapshots.ts";
import { type Housed, makeState } from "./state-maker.ts";
import type { Surroundings } from "./surroundings.ts";

export interface AttachmentInit {
  readonly claim: SessionClaim;
  readonly lease: Lease;
  readonly definition: AnySession | undefined;
  readonly capacity: Place;
  /** A clean state that outlived the lease before (S14). */
  readonly kept?: Housed | undefined;
  readonly onModel: (model: ModelFacts) => void;
  /** `kept`: a clean state that may be attached again, because only the lease ran out. */
  readonly onEnded: (attachment: Attachment, ending: Ending, kept: Housed | undefined) => void;
}

type Phase =
  | { kind: "initialising"; controller: AbortController; made: Promise<Housed | undefined> }
  | { kind: "ready"; housed: Housed; calls: Calls; idle: Timer | undefined }
  | { kind: "ending"; done: Promise<void> };

export class Attachment {
  readonly claim: SessionClaim;
  readonly lease: Lease;
  readonly since: number;
  readonly definition: AnySession | undefined;
  readonly capacity: Place;
  readonly #around: Surroundings;
  readonly #init: AttachmentInit;
  readonly #on: Holder;
  readonly #view: SessionView;
  readonly #saver: Saver;
  readonly #snapshots: Snapshots;
  readonly #events: EventDelivery;
  readonly #idleMs: number;
  /** Aborts when the right is over. */
  readonly #fence = new AbortController();
  #phase: Phase;
  #unlisten: () => void = () => undefined;

  constructor(around: Surroundings, init: AttachmentInit) {
    const { claim, lease, definition } = init;
    const { identity, runtime, config } = around.deps;
    const { workerId, nodeId, host, resourceId } = identity;
    const { attachment, sessionId: id, type, metadata } = claim;
    const { epoch } = lease;
    this.claim = claim;
    this.lease = lease;
    this.definition = definition;
    this.capacity = init.capacity;
    this.since = runtime.clock.now();
    this.#around = around;
    this.#init = init;
    this.#on = { attachment, epoch, workerId, nodeId, host, resourceId };
    const abort = (reason: string) => void this.end({ kind: "given_up", reason: "aborted", detail: reason });
    this.#view = { id, type, epoch, attachment, workerId, metadata, abort, events: noEvents };
    this.#saver = new Saver(around, claim, epoch, this.#mayTell);
    this.#snapshots = new Snapshots(runtime.clock, around.timing.snapshotEveryMs);
    this.#events = new EventDelivery(around, id);
    this.#idleMs = idleTimeoutOf(claim, definition, config);
    this.#phase = this.#begin();
  }

  get epoch(): number {
    return this.lease.epoch;
  }

  get kind(): Phase["kind"] {
    return this.#phase.kind;
  }

  get warm(): boolean {
    return this.#phase.kind === "ready";
  }

  info(): WorkerInfo["sessions"][number] {
    const { sessionId, type } = this.claim;
    const calls = this.#phase.kind === "ready" ? this.#phase.calls : undefined;
    const snapshot = this.#snapshots.latest;
    return {
      sessionId,
      type,
      epoch: this.epoch,
      calls: calls?.done ?? 0,
      queued: calls?.queued ?? 0,
      running: calls?.running ?? 0,
      since: this.since,
      ...(snapshot === undefined ? {} : { snapshot }),
    };
  }

  /** Work of this epoch. False where it came too late or a second time. */
  receive(work: SessionWork): boolean {
    switch (work.kind) {
      case "call":
        return this.#phase.kind === "ready" && this.#phase.calls.add(work.task, work.call);
      case "cancel":
        if (this.#phase.kind === "ready") this.#phase.calls.cancel(work.execution, work.of);
        return true;
      case "close":
        void this.end({ kind: "closed", reason: work.reason });
        return true;
      case "evict":
        void this.end({ kind: "given_up", reason: "evicted", detail: work.reason });
        return true;
      case "event":
        if (this.#phase.kind !== "ready") return false;
        this.#events.deliver(this.#phase.housed.state, work);
        return true;
    }
  }

  /** The keeper says that the lease is over (S7): everything stops at once. */
  lost(why: LossWhy): void {
    this.#fence.abort();
    void this.end({ kind: "fenced", why });
  }

  end(ending: Ending): Promise<void> {
    if (this.#phase.kind === "ending") return this.#phase.done;
    const before = this.#phase;
    // A turn of the microtask queue later, so that the phase has changed before anything acts on the end.
    const done = Promise.resolve().then(() => this.#finish(before, ending));
    this.#phase = { kind: "ending", done };
    return done;
  }

  #mayTell = (): boolean => !this.#fence.signal.aborted && this.#around.deps.leases.isHeld(this.lease);

  #begin(): Phase {
    const controller = new AbortController();
    const { reporter, deps } = this.#around;
    const claimed = reporter.session(this.claim, { kind: "claimed", on: this.#on }, this.#mayTell);
    const startedAt = deps.runtime.clock.monotonic();
    const made = this.#make(controller).then(
      (housed) => {
        const initMs = deps.runtime.clock.monotonic() - startedAt;
        void claimed.then(() => this.#ready(housed, initMs));
        return housed;
      },
      (error: unknown) => {
        void this.end({ kind: "init_failed", error: toFailure(error) });
        return undefined;
      },
    );
    return { kind: "initialising", controller, made };
  }

  async #make(controller: AbortController): Promise<Housed> {
    const { runtime, config } = this.#around.deps;
    const { signal } = controller;
    const { sessionId, metadata, type, attachment } = this.claim;
    const key = stateKey(sessionId, this.epoch);
    const { workerId } = this.#on;
    const facts = { key, id: sessionId, type, epoch: this.epoch, attachment, workerId, metadata };
    const { maxInitMs } = config.sessions;
    const tooLong = runtime.clock.after(maxInitMs, () => {
      const message = `init of ${type} did not finish within ${maxInitMs} ms`;
      const error = new TimeoutError({ code: "timeout", message, retryable: true });
      controller.abort(error);
      void this.end({ kind: "init_failed", error: toFailure(error) });
    });
    try {
      const { definition } = this;
      const { kept } = this.#init;
      const session: SessionHooks = {
        model: this.#init.onModel,
        gaveUp: (reason) => this.#view.abort(reason),
      };
      const request = {
        claim: this.claim,
        definition,
        facts,
        session,
        hooks: this.#hooks("init"),
        signal,
        kept,
      };
      return await makeState(this.#around, request);
    } finally {
      tooLong.cancel();
    }
  }

  #ready(housed: Housed, initMs: number): void {
    if (this.#phase.kind !== "initialising") return;
    const { deps, timing, slots, reporter } = this.#around;
    const { claim, definition } = this;
    const calls = new Calls({
      deps,
      timing,
      slots,
      state: housed.state,
      session: this.#view,
      definition,
      mayTell: this.#mayTell,
      fenced: this.#fence.signal,
      onQuiet: () => this.#armIdle(),
      onBusy: () => this.#disarmIdle(),
      onRan: () => this.#ran(),
      onHung: (detail) => void this.end({ kind: "given_up", reason: "hung", detail }),
    });
    this.#phase = { kind: "ready", housed, calls, idle: undefined };
    this.#unlisten = housed.place.host.onLost(({ reason, detail }) => {
      void this.end({ kind: "given_up", reason, detail });
    });
    this.#armIdle();
    this.#snapshots.take(definition, housed.state);
    const { warm, restored } = housed;
    const { type, sessionId } = claim;
    const openedMs = Math.max(0, deps.runtime.clock.now() - claim.openedAt);
    deps.runtime.announce({
      kind: "session.attached",
      ...{ sessionId, type, epoch: this.epoch, initMs, warm, restored, openedMs },
    });
    void reporter.session(claim, { kind: "activated", on: this.#on, initMs, warm, restored }, this.#mayTell);
  }

  /** After each run, before the next: the only moment to save the state or to look at it. */
  #ran(): void {
    if (this.#phase.kind !== "ready") return;
    const { calls, housed } = this.#phase;
    const { definition } = this;
    this.#snapshots.take(definition, housed.state);
    const every = definition?.checkpoint ? definition.options.checkpointEvery : undefined;
    if (every !== undefined && this.#saver.since(calls.done) >= every) void this.#checkpoint(housed, calls);
  }

  async #checkpoint({ state }: Housed, calls: Calls): Promise<void> {
    const goOn = await calls.hold();
    try {
      if (this.#phase.kind === "ready" && !calls.ended) await this.#saver.save(state, calls.done);
    } finally {
      goOn();
    }
  }

  #armIdle(): void {
    if (this.#phase.kind !== "ready" || this.#idleMs === 0) return;
    this.#phase.idle?.cancel();
    this.#phase.idle = this.#around.deps.runtime.clock.after(
      this.#idleMs,
      () => void this.end({ kind: "parked" }),
    );
  }

  #disarmIdle(): void {
    if (this.#phase.kind !== "ready") return;
    this.#phase.idle?.cancel();
    this.#phase.idle = undefined;
  }

  async #finish(before: Exclude<Phase, { kind: "ending" }>, ending: Ending): Promise<void> {
    const { deps } = this.#around;
    const { sessionId, type } = this.claim;
    const reason = abortReason(ending, { sessionId, epoch: this.epoch, workerId: this.#on.workerId });
    this.#unlisten();
    if (before.kind === "ready") before.idle?.cancel();
    const kept = await this.#letGo(before, ending, reason);
    if (await this.#release(ending)) await this.#tell(ending);
    deps.runtime.announce({
      kind: "session.detached",
      ...{ sessionId, type, epoch: this.epoch, ...describeEnding(ending) },
    });
    this.#init.onEnded(this, ending, kept);
  }

  async #letGo(before: Exclude<Phase, { kind: "ending" }>, ending: Ending, reason: Error) {
    const hooks = this.#hooks("shutdown");
    const closeMs = this.#around.timing.closeMs;
    if (before.kind === "initialising") {
      before.controller.abort(reason);
      await letGoUnmade(before.made, { hooks, closeMs });
      return undefined;
    }
    const { calls, housed } = before;
    // Only the lease is gone and the state is as good as before: it may be attached again (S14).
    if (ending.kind === "fenced" && ending.why === "expired" && !calls.dirty) {
      calls.end(reason);
      return housed;
    }
    const finishMs = isPlanned(ending) ? this.#around.deps.config.drainTimeoutMs : 0;
    await letGo(housed, {
      calls,
      reason,
      hooks,
      finishMs,
      // Nobody waits again for what has been waited for too long.
      closeMs: ending.kind === "given_up" && ending.reason === "hung" ? 0 : closeMs,
      save: isPlanned(ending) && this.definition?.checkpoint !== undefined ? this.#saver : undefined,
    });
    return undefined;
  }

  /** True where this act removed the lease: then it is on us to tell (A3). */
  async #release(ending: Ending): Promise<boolean> {
    if (ending.kind === "fenced") return false;
    const { leases, runtime } = this.#around.deps;
    try {
      return (await leases.release(this.lease)) === "released";
    } catch (error) {
      // It runs out by itself, and the watcher tells.
      const { code, message } = toFailure(error);
      runtime.announce({ kind: "fault", where: `release of ${this.lease.key}`, code, message, error });
      return false;
    }
  }

  async #tell(ending: Ending): Promise<void> {
    const { reporter, checkpoints, deps, timing } = this.#around;
    const { epoch, claim } = this;
    const giveUpAt = deps.runtime.clock.monotonic() + timing.tellMs;
    const mayTell = () => deps.runtime.clock.monotonic() < giveUpAt;
    switch (ending.kind) {
      case "closed":
        if (this.definition?.checkpoint) await checkpoints.removeAll(claim.sessionId);
        return;
      case "parked":
        await reporter.session(claim, { kind: "parked", epoch }, mayTell);
        return;
      case "init_failed":
        await reporter.session(claim, { kind: "init_failed", error: ending.error }, mayTell);
        return;
      case "given_up": {
        const { reason, detail } = ending;
        const why = detail === undefined ? { reason } : { reason, detail };
        await reporter.session(claim, { kind: "lost", epoch, ...why }, mayTell);
        return;
      }
      case "fenced":
        return;
    }
  }

  #hooks(name: string): RunHooks {
    const { announce } = this.#around.deps.runtime;
    const { instanceId, sessionId, attachment } = this.claim;
    return {
      log: (level, message, fields) =>
        announce({
          kind: "work.log",
          ...{ instanceId, name, of: 0, attempt: attachment, sessionId, level, message },
          ...(fields ? { fields } : {}),
        }),
    };
  }
}

const noEvents: SessionView["events"] = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};
