/**
 * One session held by this worker under one epoch: from the won claim to the released lease. State, queue and
 * timers belong to it and end with it (S3).
 *
 * HOLD-1 No report is sent under a right that is over (S7): the lease is asked before every report.
 * HOLD-2 `shutdown` runs at most once, and never while other code of the session runs.
 * HOLD-3 An attachment ends once; the first reason wins. The process that removed the lease reports the end,
 *    so the instance learns of it once.
 */
import type {
  Attachment as Holder,
  SessionClaim,
  SessionWork,
  WorkerInfo,
} from "../../../../schemas/index.ts";
import type { AnySession, SessionView } from "../../../../shared/definitions/index.ts";
import { SessionLostError, TimeoutError, toFailure } from "../../../../shared/errors/index.ts";
import type { Lease, LossWhy } from "../../../../shared/leases/index.ts";
import type { Timer } from "../../../../shared/runtime/index.ts";
import { type Host, type ModelFacts, type RunHooks, stateKey } from "../../hosts/index.ts";
import type { ReplyPath } from "../../lane/index.ts";
import { Calls } from "../calls/calls.ts";
import type { Place } from "../claiming/capacity.ts";
import type { ClaimReply } from "../claiming/claim-reply.ts";
import { sharedPoolOf } from "../pools/pool-of.ts";
import type { Seats } from "../quotas/quotas.ts";
import { type IdleRule, idleRuleOf } from "../session-options.ts";
import type { SessionServices } from "../session-services.ts";
import { CheckpointSaver } from "./checkpoint-saver.ts";
import { reportClaimLater } from "./claimed-report.ts";
import { detach, type Live } from "./detach.ts";
import { EventDelivery } from "./event-delivery.ts";
import { HeldSessionView } from "./held-session-view.ts";
import { makeState, type StateRequest } from "./make-state.ts";
import { MetadataReporter } from "./metadata-reporter.ts";
import type { PlacedState } from "./placed-state.ts";
import { SessionBlobs } from "./session-blobs.ts";
import type { SessionEnding } from "./session-ending.ts";
import { type CaredSession, StateCare } from "./state-care.ts";

export interface HeldSessionInit {
  readonly claim: SessionClaim;
  readonly lease: Lease;
  readonly definition: AnySession | undefined;
  readonly capacity: Place;
  /** The session's seats in the quotas that apply to it. */
  readonly seats: Seats;
  /** A clean state that outlived the previous lease (S14). */
  readonly kept?: PlacedState | undefined;
  /** The offer by which the claim came, if its answer may carry the report that the state is ready. */
  readonly reply?: ClaimReply | undefined;
  readonly noted?: MetadataReporter | undefined;
  readonly blobs?: SessionBlobs | undefined;
  readonly onModel: (model: ModelFacts) => void;
  /** `kept`: a clean state that may be attached again, because only the lease ran out. */
  readonly onEnded: (attachment: HeldSession, kept: PlacedState | undefined) => void;
}

type Phase =
  | Extract<Live, { kind: "initialising" }>
  | (Extract<Live, { kind: "ready" }> & { idle: Timer | undefined })
  | { kind: "ending"; done: Promise<void>; calls: Calls | undefined };

export class HeldSession {
  readonly claim: SessionClaim;
  readonly lease: Lease;
  readonly since: number;
  readonly definition: AnySession | undefined;
  readonly capacity: Place;
  readonly noted: MetadataReporter;
  readonly blobs: SessionBlobs;
  readonly #services: SessionServices;
  readonly #init: HeldSessionInit;
  readonly #on: Holder;
  readonly #view: SessionView;
  readonly #saver: CheckpointSaver;
  readonly #care: StateCare;
  readonly #events: EventDelivery;
  readonly #idleRule: IdleRule;
  /** Aborts when the right is over. */
  readonly #fence = new AbortController();
  #phase: Phase;
  /** The host in which the state lives, or is being made. */
  #host: Host | undefined;
  #unlisten: () => void = () => undefined;
  #modelLoads = 0;
  #usedAt: number | undefined;

  constructor(services: SessionServices, init: HeldSessionInit) {
    const { claim, lease, definition } = init;
    const { identity, runtime, config } = services.deps;
    const { workerId, nodeId, host, resourceId } = identity;
    const { attachment, sessionId } = claim;
    const { epoch } = lease;
    this.claim = claim;
    this.lease = lease;
    this.definition = definition;
    this.capacity = init.capacity;
    this.since = runtime.clock.now();
    this.#services = services;
    this.#init = init;
    this.#on = { attachment, epoch, workerId, nodeId, host, resourceId };
    this.noted = new MetadataReporter(services, claim, epoch, this.#mayReport, init.noted);
    this.blobs = new SessionBlobs(services, claim, epoch, this.#mayReport, init.blobs);
    this.#view = new HeldSessionView(claim, this.#on, this);
    this.#saver = new CheckpointSaver(services, claim, epoch, this.#mayReport);
    this.#care = new StateCare(services, this.#caredSession(), this.#saver);
    this.#events = new EventDelivery(services, sessionId);
    this.#idleRule = idleRuleOf(claim, definition, config);
    this.#phase = this.#begin();
  }

  get epoch(): number {
    return this.lease.epoch;
  }

  info(): WorkerInfo["sessions"][number] {
    const { sessionId, type } = this.claim;
    const { calls, placed } = this.#phase.kind === "ready" ? this.#phase : nothingYet;
    const { snapshot } = this.#care;
    const hostBytes = placed?.place.host.rssBytes();
    const host = this.#host?.info();
    return {
      sessionId,
      type,
      epoch: this.epoch,
      calls: calls?.done ?? 0,
      queued: calls?.queued ?? 0,
      running: calls?.running ?? 0,
      since: this.since,
      ...(this.#services.deps.generation.allows(2) && {
        errors: calls?.errors ?? 0,
        modelLoads: this.#modelLoads,
        ...(this.#usedAt !== undefined && { usedAt: this.#usedAt }),
        ...(hostBytes !== undefined && { hostBytes }),
        ...(host && { host }),
      }),
      ...(snapshot === undefined ? {} : { snapshot }),
    };
  }

  /** Work of this epoch. Returns false if it came too late or a second time. */
  receive(work: SessionWork, lane?: ReplyPath): boolean {
    switch (work.kind) {
      case "call":
        return this.#phase.kind === "ready" && this.#phase.calls.add(work, lane);
      case "cancel":
        if (this.#phase.kind === "ready") this.#phase.calls.cancel(work);
        return true;
      case "close":
        void this.end({ kind: "closed", reason: work.reason });
        return true;
      case "evict":
        void this.end({ kind: "given_up", reason: "evicted", detail: work.reason });
        return true;
      case "drain":
        void this.end({ kind: "given_up", reason: "drained", detail: work.reason });
        return true;
      case "event":
        if (this.#phase.kind !== "ready" || !this.#mayReport()) return false;
        this.#events.deliver(this.#phase.placed.state, work);
        return true;
    }
  }

  /**
   * The keeper reports that the lease is over (S7): everything stops at once, even runs that a planned end
   * would let finish.
   */
  lost(why: LossWhy): void {
    this.#fence.abort();
    if (this.#phase.kind === "ending") {
      const { sessionId } = this.claim;
      this.#phase.calls?.end(new SessionLostError({ sessionId, epoch: this.epoch, reason: "expired" }));
    }
    void this.end({ kind: "fenced", why });
  }

  end(ending: SessionEnding): Promise<void> {
    if (this.#phase.kind === "ending") return this.#phase.done; // HOLD-3
    const before = this.#phase;
    const known =
      ending.kind === "given_up" && before.kind === "ready"
        ? { ...ending, running: before.calls.runningCalls() }
        : ending;
    // One microtask later, so that the phase has changed before anything acts on the end.
    const done = Promise.resolve().then(() => this.#detach(before, known));
    this.#phase = { kind: "ending", done, calls: before.kind === "ready" ? before.calls : undefined };
    return done;
  }

  #mayReport = (): boolean => !this.#fence.signal.aborted && this.#services.deps.leases.isHeld(this.lease);

  #begin(): Phase {
    const controller = new AbortController();
    const { deps } = this.#services;
    const stopClaimReport = this.#init.kept
      ? () => Promise.resolve()
      : reportClaimLater(this.#services, this.claim, this.#on, this.#mayReport);
    const startedAt = deps.runtime.clock.monotonic();
    const made = this.#make(controller).then(
      (placed) => {
        const initMs = deps.runtime.clock.monotonic() - startedAt;
        void stopClaimReport().then(() => this.#ready(placed, initMs));
        return placed;
      },
      (error: unknown) => {
        void stopClaimReport();
        void this.end({ kind: "init_failed", error: toFailure(error) });
        return undefined;
      },
    );
    return { kind: "initialising", controller, made };
  }

  async #make(controller: AbortController): Promise<PlacedState> {
    const { runtime, config } = this.#services.deps;
    const { maxInitMs } = config.sessions;
    const tooLong = runtime.clock.after(maxInitMs, () => {
      const message = `init of ${this.claim.type} did not finish within ${maxInitMs} ms`;
      const error = new TimeoutError({ code: "timeout", message, retryable: true });
      controller.abort(error);
      void this.end({ kind: "init_failed", error: toFailure(error) });
    });
    try {
      const { kept } = this.#init;
      const onPlace = (host: Host) => {
        this.#host = host;
      };
      return await makeState(this.#services, { ...this.#request(controller.signal), kept, onPlace });
    } finally {
      tooLong.cancel();
    }
  }

  #request(signal: AbortSignal): Omit<StateRequest, "kept"> {
    const { claim, definition, epoch } = this;
    const { sessionId: id, type, attachment } = claim;
    const { metadata } = this.noted;
    const key = stateKey(id, epoch);
    const { workerId, host, resourceId } = this.#on;
    return {
      ...{ claim, definition, signal },
      facts: { key, id, type, epoch, attachment, workerId, host, resourceId, metadata },
      session: {
        model: (model) => {
          this.#modelLoads++;
          this.#init.onModel(model);
        },
        metadata: (change) => this.noted.change(change),
        blob: (request) => this.blobs.answer(request),
        gaveUp: (reason) => this.#view.abort(reason),
      },
      hooks: this.#hooks("init"),
    };
  }

  #ready(placed: PlacedState, initMs: number): void {
    if (this.#phase.kind !== "initialising") return;
    if (!this.#mayReport()) return this.lost("expired");
    const { deps, timing, slots, reporter, pools } = this.#services;
    const { claim, definition } = this;
    const calls = new Calls({
      deps,
      timing,
      slots,
      state: placed.state,
      session: this.#view,
      definition,
      concurrency: claim.concurrency,
      mayReport: this.#mayReport,
      fenced: this.#fence.signal,
      onQuiet: () => this.#armIdle(),
      onBusy: () => {
        this.#used();
        this.#disarmIdle();
      },
      onRan: () => {
        this.#used();
        this.#care.ran();
      },
      onFenced: () => this.lost("expired"),
      onHung: (detail) => void this.end({ kind: "given_up", reason: "hung", detail }),
    });
    const poolId = sharedPoolOf(claim);
    const pool = poolId && definition ? pools.join({ poolId, definition, calls }) : undefined;
    this.#phase = { kind: "ready", placed, calls, pool, idle: undefined };
    this.#live(placed);
    this.#armIdle();
    this.#care.look();
    const { warm, restored } = placed;
    const { type, sessionId } = claim;
    const openedMs = Math.max(0, deps.runtime.clock.now() - claim.openedAt);
    deps.runtime.announce({
      kind: "session.attached",
      ...{ sessionId, type, epoch: this.epoch, initMs, warm, restored, openedMs },
      ...{ instanceId: claim.instanceId, traceparent: claim.traceparent },
    });
    deps.faultPoints?.reach("init.before_told", this.#view);
    const activated = { kind: "activated" as const, on: this.#on, initMs, warm, restored };
    void reporter.ready(claim, activated, this.#mayReport, this.#init.reply).then((reported) => {
      if (!reported) return;
      this.noted.ready();
      this.blobs.ready();
      deps.faultPoints?.reach("init.after_told", this.#view);
    });
  }

  #caredSession(): CaredSession {
    return {
      claim: this.claim,
      definition: this.definition,
      ready: () => (this.#phase.kind === "ready" && this.#mayReport() ? this.#phase : undefined),
      moved: (placed) => {
        if (this.#phase.kind === "ready") this.#phase.placed = placed;
        this.#live(placed);
      },
      giveUp: (why) => void this.end({ kind: "given_up", reason: "recycled", detail: why }),
      request: () => this.#request(this.#fence.signal),
      hooks: (name) => this.#hooks(name),
    };
  }

  /** Follows the host in which the state lives. */
  #live({ place }: PlacedState): void {
    this.#unlisten();
    this.#host = place.host;
    const stopListening = place.host.onLost(({ reason, detail }) => {
      void this.end({ kind: "given_up", reason, detail });
    });
    const stopRetiring = place.onRetire((why) => void this.#care.recycle(why));
    this.#unlisten = () => {
      stopListening();
      stopRetiring();
    };
  }

  #armIdle(): void {
    if (this.#phase.kind !== "ready" || this.#idleRule.ms === 0) return;
    this.#phase.idle?.cancel();
    this.#phase.idle = this.#services.deps.runtime.clock.after(this.#idleRule.ms, () => void this.#park());
  }

  /**
   * If neither the session nor its type asked for parking, a state that cannot be saved stays where it is.
   */
  async #park(): Promise<void> {
    if (this.#idleRule.lossless) {
      const saved = await this.#care.save();
      if (this.#phase.kind !== "ready" || this.#phase.calls.busy) return;
      if (saved !== "saved") return this.#armIdle();
    }
    void this.end({ kind: "parked" });
  }

  #used(): void {
    this.#usedAt = this.#services.deps.runtime.clock.now();
  }

  #disarmIdle(): void {
    if (this.#phase.kind !== "ready") return;
    this.#phase.idle?.cancel();
    this.#phase.idle = undefined;
  }

  async #detach(before: Exclude<Phase, { kind: "ending" }>, ending: SessionEnding): Promise<void> {
    const { claim, lease, definition } = this;
    this.#unlisten();
    if (before.kind === "ready") {
      before.idle?.cancel();
      before.pool?.stop();
    }
    const hooks = this.#hooks("shutdown");
    const { seats } = this.#init;
    const one = { services: this.#services, claim, lease, definition, seats, saver: this.#saver, hooks };
    this.#init.onEnded(this, await detach(one, before, ending));
  }

  #hooks(name: string): RunHooks {
    const { announce } = this.#services.deps.runtime;
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

const nothingYet = { calls: undefined, placed: undefined };
