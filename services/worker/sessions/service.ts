/** The sessions of a worker: claims them, holds them, serves their calls and releases them. */
import { bareSessionType } from "../../../schemas/index.ts";
import { once } from "../../../shared/runtime/index.ts";
import type { SessionLoad, SessionPart } from "../deps.ts";
import { HostPool } from "../hosts/index.ts";
import { Slots } from "../slots.ts";
import { DirectCalls } from "./calls/direct-calls.ts";
import { type OnWork, WorkFeed } from "./calls/work-feed.ts";
import { Capacity } from "./claiming/capacity.ts";
import { ClaimTaker } from "./claiming/claim-taker.ts";
import { Claims } from "./claiming/claims.ts";
import { Fleet, type LoadFigures } from "./claiming/fleet.ts";
import { WarmKeys } from "./claiming/warm-keys.ts";
import { Checkpoints } from "./holding/checkpoints.ts";
import type { HeldSession, HeldSessionInit } from "./holding/held-session.ts";
import { HeldSessions } from "./holding/held-sessions.ts";
import type { PlacedState } from "./holding/placed-state.ts";
import { Reattach } from "./holding/reattach.ts";
import { SessionReporter } from "./holding/session-reporter.ts";
import { PoolFeeds } from "./pools/pool-feeds.ts";
import { Quotas } from "./quotas/quotas.ts";
import { type SessionDeps, timingOf } from "./session-deps.ts";
import { maxPerWorkerOf, maxTotalsOf } from "./session-options.ts";
import type { SessionServices } from "./session-services.ts";

export class SessionService implements SessionPart {
  readonly #deps: SessionDeps;
  readonly #services: SessionServices;
  readonly #types: readonly string[];
  readonly #capacity: Capacity;
  readonly #quotas: Quotas;
  readonly #fleet: Fleet;
  readonly #claims: Claims;
  readonly #feed: WorkFeed;
  readonly #direct: DirectCalls;
  readonly #warmKeys: WarmKeys;
  readonly #held = new HeldSessions();
  readonly #reattach: Reattach;
  #unlisten: () => void = () => undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    const timing = timingOf(deps);
    const { config, app, runtime } = deps;
    this.#types = config.sessions.types ?? [...app.sessions.keys(), bareSessionType];
    this.#warmKeys = new WarmKeys(runtime.clock);
    this.#capacity = new Capacity(
      {
        max: config.sessions.max,
        maxOf: (type) => maxPerWorkerOf(type, app.sessions.get(type), config),
        resources: config.resources,
      },
      deps.loadChanged,
    );
    const limits = { types: maxTotalsOf(this.#types, app.sessions), all: config.sessions.maxTotal };
    this.#quotas = new Quotas(deps, timing, limits);
    this.#services = {
      deps,
      timing,
      slots: new Slots(config.sessions.callSlots, { onChange: deps.callsChanged ?? deps.loadChanged }),
      hosts: new HostPool({
        ...{ app, runtime, appPath: deps.appPath, will: deps.will },
        ...{ maxSessions: config.sessions.max, resources: config.resources },
      }),
      reporter: new SessionReporter(deps),
      checkpoints: new Checkpoints(deps.bus.blobs, timing.maxCheckpointBytes),
      pools: new PoolFeeds(deps, timing),
    };
    this.#fleet = new Fleet(deps, this.#types, () => this.#figures());
    const onAttached = (attachment: HeldSession) => this.#attached(attachment);
    const callbacks: Pick<HeldSessionInit, "onModel" | "onEnded"> = {
      onModel: (model) => {
        const { name, ...facts } = model;
        runtime.announce({ kind: "model.loaded", model: name, ...facts });
        this.#warmKeys.loaded(model);
      },
      onEnded: (attachment, kept) => this.#ended(attachment, kept),
    };
    const capacity = this.#capacity;
    const quotas = this.#quotas;
    const taker = new ClaimTaker(this.#services, { capacity, quotas }, onAttached, callbacks);
    this.#reattach = new Reattach(this.#services, quotas, onAttached, callbacks);
    this.#claims = new Claims({
      ...{ deps, timing, types: this.#types, capacity, quotas, fleet: this.#fleet, taker },
    });
    const onWork: OnWork = (sessionId, work, lane) => this.#held.receive(sessionId, work, lane);
    this.#feed = new WorkFeed(deps, timing, onWork);
    this.#direct = new DirectCalls(deps, onWork);
  }

  async start(): Promise<void> {
    this.#unlisten = this.#deps.leases.onLost((lease, why) => this.#held.lost(lease, why));
    await this.#feed.start();
    await this.#direct.start();
    await this.#quotas.start();
    await this.#claims.start();
  }

  /**
   * S13: stops claiming, lets running calls finish while the leases are still renewed, saves the states,
   * releases the sessions and reports it.
   */
  drain = once(async () => {
    this.#fleet.draining = true;
    await this.#claims.stop();
    await this.#reattach.stop();
    await Promise.all(this.#held.all().map((held) => held.end({ kind: "given_up", reason: "drained" })));
  });

  stop = once(async () => {
    await this.drain();
    await this.#services.pools.stop();
    await this.#direct.stop();
    await this.#feed.stop();
    await this.#quotas.stop();
    this.#unlisten();
    await this.#services.hosts.stop();
  });

  load(): SessionLoad {
    const sessions = this.#held.all().map((attachment) => attachment.info());
    const quotas = this.#quotas.figures();
    return { ...this.#figures(), quotas, models: this.#warmKeys.models(), sessions };
  }

  /** Does not go through the sessions, because every claim asks for these figures. */
  #figures(): LoadFigures {
    const { slots } = this.#services;
    const capacity = this.#capacity;
    const perType = this.#types.map((type) => {
      return [type, { used: capacity.usedBy(type), max: capacity.maxOf(type) }] as const;
    });
    return {
      used: capacity.used,
      max: capacity.max,
      calls: { used: slots.used, max: slots.max },
      perType: Object.fromEntries(perType),
      pools: capacity.pools(),
      warm: this.#warmKeys.keys(),
      resourcesUsed: capacity.resourcesUsed(),
    };
  }

  #attached(attachment: HeldSession): void {
    this.#held.add(attachment);
    // Its place was shown as taken when the claim began; the session itself is shown only now.
    this.#deps.loadChanged();
    this.#direct.attached(attachment.claim);
    this.#warmKeys.entered(attachment);
    // The lease was lost between the claim's answer and now: no other code reports that to the attachment.
    if (!this.#deps.leases.isHeld(attachment.lease)) attachment.lost("expired");
    else if (this.#fleet.draining) void attachment.end({ kind: "given_up", reason: "drained" });
  }

  #ended(attachment: HeldSession, kept: PlacedState | undefined): void {
    this.#held.remove(attachment);
    this.#direct.detached(attachment.claim.sessionId);
    this.#warmKeys.left(attachment);
    if (kept) {
      this.#reattach.begin(attachment, kept);
      return;
    }
    attachment.capacity.free();
    this.#claims.roomChanged();
  }
}
