/** The sessions of a worker: claims them, holds them, serves their calls, gives them back. */
import { bareSessionType, type SessionWork } from "../../../schemas/index.ts";
import { once } from "../../../shared/runtime/index.ts";
import type { SessionLoad, SessionPart } from "../deps.ts";
import { HostPool } from "../hosts/index.ts";
import { Slots } from "../slots.ts";
import type { Attachment } from "./attachment.ts";
import { Capacity } from "./capacity.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Claims } from "./claims.ts";
import type { Ending } from "./ending.ts";
import { Fleet } from "./fleet.ts";
import { Reporter } from "./reporter.ts";
import { type SessionDeps, timingOf } from "./session-deps.ts";
import { maxPerWorkerOf } from "./session-options.ts";
import type { Housed } from "./state-maker.ts";
import type { Surroundings } from "./surroundings.ts";
import { Taker } from "./taker.ts";
import { Warmth } from "./warmth.ts";
import { WorkFeed } from "./work-feed.ts";

export class SessionService implements SessionPart {
  readonly #deps: SessionDeps;
  readonly #around: Surroundings;
  readonly #types: readonly string[];
  readonly #capacity: Capacity;
  readonly #fleet: Fleet;
  readonly #claims: Claims;
  readonly #feed: WorkFeed;
  readonly #warmth: Warmth;
  /** By lease key: two attachments of one session may overlap while the older one ends (S3). */
  readonly #held = new Map<string, Attachment>();
  #unlisten: () => void = () => undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    const timing = timingOf(deps);
    const { config, app, runtime } = deps;
    this.#types = config.sessions.types ?? [...app.sessions.keys(), bareSessionType];
    this.#warmth = new Warmth(runtime.clock);
    this.#capacity = new Capacity(
      {
        max: config.sessions.max,
        maxOf: (type) => maxPerWorkerOf(type, app.sessions.get(type), config),
        resources: config.resources,
      },
      deps.loadChanged,
    );
    this.#around = {
      deps,
      timing,
      slots: new Slots(config.sessions.callSlots),
      hosts: new HostPool({
        ...{ app, runtime, appPath: deps.appPath },
        ...{ maxSessions: config.sessions.max, resources: config.resources },
      }),
      reporter: new Reporter(deps),
      checkpoints: new Checkpoints(deps.bus.blobs, timing.maxCheckpointBytes),
    };
    this.#fleet = new Fleet(deps, this.#types, () => this.load());
    const taker = new Taker(this.#around, this.#capacity, (attachment) => this.#attached(attachment), {
      onModel: (model) => this.#warmth.loaded(model),
      onEnded: (attachment, ending, kept) => this.#ended(attachment, ending, kept),
    });
    this.#claims = new Claims({
      ...{ deps, timing, types: this.#types, capacity: this.#capacity, fleet: this.#fleet, taker },
    });
    this.#feed = new WorkFeed(deps, timing, (sessionId, work) => this.#work(sessionId, work));
  }

  async start(): Promise<void> {
    this.#unlisten = this.#deps.leases.onLost((lease, why) => this.#held.get(lease.key)?.lost(why));
    await this.#feed.start();
    await this.#claims.start();
  }

  /** S13: claims nothing more, finishes what runs while the leases are still renewed, saves, gives back, says so. */
  drain = once(async () => {
    this.#fleet.draining = true;
    await this.#claims.stop();
    await Promise.all(
      [...this.#held.values()].map((held) => held.end({ kind: "given_up", reason: "drained" })),
    );
  });

  stop = once(async () => {
    await this.drain();
    await this.#feed.stop();
    this.#unlisten();
    await this.#around.hosts.stop();
  });

  load(): SessionLoad {
    const { slots } = this.#around;
    const capacity = this.#capacity;
    const held = [...this.#held.values()];
    const perType = this.#types.map((type) => {
      const max = capacity.maxOf(type);
      return [type, { used: capacity.usedBy(type), max }] as const;
    });
    return {
      used: capacity.used,
      max: capacity.max,
      calls: { used: slots.used, max: slots.max },
      perType: Object.fromEntries(perType),
      warm: this.#warmth.keys(held),
      resourcesUsed: capacity.resourcesUsed(),
      models: this.#warmth.models(),
      sessions: held.map((attachment) => attachment.info()),
    };
  }

  #attached(attachment: Attachment): void {
    this.#held.set(attachment.lease.key, attachment);
    // Lost between the claim's answer and now: nobody else will tell it.
    if (!this.#deps.leases.isHeld(attachment.lease)) attachment.lost("expired");
  }

  #ended(attachment: Attachment, _ending: Ending, _kept: Housed | undefined): void {
    this.#held.delete(attachment.lease.key);
    this.#warmth.left(attachment);
    attachment.capacity.free();
    this.#claims.roomChanged();
  }

  #work(sessionId: string, work: SessionWork): boolean {
    const epoch = work.kind === "event" ? undefined : work.epoch;
    let found: Attachment | undefined;
    for (const held of this.#held.values()) {
      if (held.claim.sessionId !== sessionId || (epoch !== undefined && held.epoch !== epoch)) continue;
      if (!found || held.epoch > found.epoch) found = held;
    }
    return found?.receive(work) ?? false;
  }
}
