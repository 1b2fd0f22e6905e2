/** The sessions of a worker: claims them, holds them, serves their calls, gives them back. */
import { bareSessionType } from "../../../schemas/index.ts";
import { once } from "../../../shared/runtime/index.ts";
import type { SessionLoad, SessionPart } from "../deps.ts";
import { HostPool } from "../hosts/index.ts";
import { Slots } from "../slots.ts";
import { WorkFeed } from "./calls/work-feed.ts";
import { checkTypes } from "./check-types.ts";
import { Capacity } from "./claiming/capacity.ts";
import { ClaimTaker } from "./claiming/claim-taker.ts";
import { Claims } from "./claiming/claims.ts";
import { Fleet, type LoadFigures } from "./claiming/fleet.ts";
import { ServerTime } from "./claiming/server-time.ts";
import { WarmKeys } from "./claiming/warm-keys.ts";
import type { Attachment, AttachmentInit } from "./holding/attachment.ts";
import { Checkpoints } from "./holding/checkpoints.ts";
import { HeldSessions } from "./holding/held-sessions.ts";
import type { Housed } from "./holding/housed.ts";
import { Reattach } from "./holding/reattach.ts";
import { SessionReporter } from "./holding/session-reporter.ts";
import { PoolFeeds } from "./pools/pool-feeds.ts";
import { Quotas } from "./quotas/quotas.ts";
import { type SessionDeps, timingOf } from "./session-deps.ts";
import { maxPerWorkerOf, maxTotalsOf } from "./session-options.ts";
import type { SessionServices } from "./session-services.ts";

export class SessionService implements SessionPart {
  readonly #deps: SessionDeps;
  readonly #around: SessionServices;
  readonly #types: readonly string[];
  readonly #capacity: Capacity;
  readonly #quotas: Quotas;
  readonly #fleet: Fleet;
  readonly #claims: Claims;
  readonly #feed: WorkFeed;
  readonly #warmth: WarmKeys;
  readonly #held = new HeldSessions();
  readonly #reattach: Reattach;
  #unlisten: () => void = () => undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    const timing = timingOf(deps);
    const { config, app, runtime } = deps;
    this.#types = config.sessions.types ?? [...app.sessions.keys(), bareSessionType];
    checkTypes(this.#types.flatMap((type) => app.sessions.get(type) ?? []));
    this.#warmth = new WarmKeys(runtime.clock);
    this.#capacity = new Capacity(
      {
        max: config.sessions.max,
        maxOf: (type) => maxPerWorkerOf(type, app.sessions.get(type), config),
        resources: config.resources,
      },
      deps.loadChanged,
    );
    const time = new ServerTime(runtime.clock);
    const limits = { types: maxTotalsOf(this.#types, app.sessions), all: config.sessions.maxTotal };
    this.#quotas = new Quotas(deps, timing, limits, time);
    this.#around = {
      deps,
      timing,
      slots: new Slots(config.sessions.callSlots, { onChange: deps.callsChanged ?? deps.loadChanged }),
      hosts: new HostPool({
        ...{ app, runtime, appPath: deps.appPath },
        ...{ maxSessions: config.sessions.max, resources: config.resources },
      }),
      reporter: new SessionReporter(deps),
      checkpoints: new Checkpoints(deps.bus.blobs, timing.maxCheckpointBytes),
      pools: new PoolFeeds(deps, timing, time),
    };
    this.#fleet = new Fleet(deps, this.#types, () => this.#figures());
    const onAttached = (attachment: Attachment) => this.#attached(attachment);
    const callbacks: Pick<AttachmentInit, "onModel" | "onEnded"> = {
      onModel: (model) => this.#warmth.loaded(model),
      onEnded: (attachment, kept) => this.#ended(attachment, kept),
    };
    const capacity = this.#capacity;
    const quotas = this.#quotas;
    const taker = new ClaimTaker(this.#around, { capacity, quotas }, onAttached, callbacks);
    this.#reattach = new Reattach(this.#around, quotas, onAttached, callbacks);
    this.#claims = new Claims({
      ...{ deps, timing, types: this.#types, capacity, quotas, fleet: this.#fleet, taker, time },
    });
    this.#feed = new WorkFeed(deps, timing, (sessionId, work, lane) =>
      this.#held.receive(sessionId, work, lane),
    );
  }

  async start(): Promise<void> {
    this.#unlisten = this.#deps.leases.onLost((lease, why) => this.#held.lost(lease, why));
    await this.#feed.start();
    await this.#quotas.start();
    await this.#claims.start();
  }

  /** S13: claims nothing more, finishes what runs while the leases are still renewed, saves, gives back, says so. */
  drain = once(async () => {
    this.#fleet.draining = true;
    await this.#claims.stop();
    await this.#reattach.stop();
    await Promise.all(this.#held.all().map((held) => held.end({ kind: "given_up", reason: "drained" })));
  });

  stop = once(async () => {
    await this.drain();
    await this.#around.pools.stop();
    await this.#feed.stop();
    await this.#quotas.stop();
    this.#unlisten();
    await this.#around.hosts.stop();
  });

  load(): SessionLoad {
    const sessions = this.#held.all().map((attachment) => attachment.info());
    const quotas = this.#quotas.figures();
    return { ...this.#figures(), quotas, models: this.#warmth.models(), sessions };
  }

  /** Without a look at every session: asked for each claim. */
  #figures(): LoadFigures {
    const { slots } = this.#around;
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
      warm: this.#warmth.keys(),
      resourcesUsed: capacity.resourcesUsed(),
    };
  }

  #attached(attachment: Attachment): void {
    this.#held.add(attachment);
    this.#warmth.entered(attachment);
    // Lost between the claim's answer and now: nobody else will tell it.
    if (!this.#deps.leases.isHeld(attachment.lease)) attachment.lost("expired");
    else if (this.#fleet.draining) void attachment.end({ kind: "given_up", reason: "drained" });
  }

  #ended(attachment: Attachment, kept: Housed | undefined): void {
    this.#held.remove(attachment);
    this.#warmth.left(attachment);
    if (kept) {
      this.#reattach.begin(attachment, kept);
      return;
    }
    attachment.capacity.free();
    this.#claims.roomChanged();
  }
}
