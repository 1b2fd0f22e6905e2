/**
 * Buries messages that no consumer will ever deliver: messages among the schedules that are not schedules,
 * and, on queues and session types that no worker serves, messages that are not work or belong to an instance
 * that has ended. Junk goes to the dead letters with its reason; an unreadable message that may be of a newer
 * version stays.
 */
import { z } from "zod";
import { ActivityTask, SessionClaim } from "../../../schemas/index.ts";
import { bury, decode, headerNames, parseJson, type StoredMessage } from "../../../shared/bus/index.ts";
import type { Histories, WatcherDeps } from "../deps.ts";
import { endedBefore } from "./ended.ts";
import type { RetentionStep } from "./step.ts";

interface Place {
  readonly stream: string;
  readonly filter: string;
  /** Kind of the dead letter. */
  readonly what: string;
}

/** How many schedules one round looks at, continuing where the round before ended. */
const mostSchedules = 1_000;
/** How many of the oldest work messages one round looks at: newer ones are on their way to a worker. */
const mostWork = 200;
const scheduleHeader = headerNames.schedule;

const Versioned = z.looseObject({ v: z.int() });
/** Both kinds of work name their instance. */
const Work = z.union([ActivityTask, SessionClaim]);

export class BuryJunk implements RetentionStep {
  readonly name = "junk";
  readonly #deps: WatcherDeps;
  readonly #histories: Pick<Histories, "exists">;
  readonly #schedules: readonly Place[];
  readonly #queues: readonly Place[];
  readonly #lookedThrough = new Map<string, number>();

  constructor(deps: WatcherDeps, histories: Pick<Histories, "exists">) {
    const { names } = deps;
    this.#deps = deps;
    this.#histories = histories;
    this.#schedules = [
      { stream: names.timersStream, filter: names.allTimers, what: "timer" },
      { stream: names.activitiesStream, filter: names.allRetries, what: "activity" },
      { stream: names.sessionsStream, filter: names.allSessionRetries, what: "call" },
    ];
    this.#queues = [
      { stream: names.activitiesStream, filter: names.allActivities, what: "activity" },
      { stream: names.claimsStream, filter: names.allClaims, what: "claim" },
    ];
  }

  async run(limit: number): Promise<number> {
    let done = 0;
    for (const place of this.#schedules) {
      for (const message of await this.#newSchedules(place)) {
        if (done >= limit || !this.#deps.acting()) return done;
        if (message.headers[scheduleHeader] === undefined && (await this.#bury(place, message, notSchedule)))
          done++;
      }
    }
    for (const place of this.#queues) {
      for (const message of await this.#oldWork(place)) {
        if (done >= limit || !this.#deps.acting()) return done;
        if (await this.#isGone(place, message)) done++;
      }
    }
    return done;
  }

  /** A schedule never turns into junk: each is looked at once. */
  async #newSchedules({ stream, filter }: Place): Promise<StoredMessage[]> {
    const from = (this.#lookedThrough.get(filter) ?? 0) + 1;
    const found = (await this.#deps.bus.read(stream, filter, from, mostSchedules)) ?? [];
    const last = found.at(-1);
    if (last) this.#lookedThrough.set(filter, last.seq);
    return found;
  }

  async #oldWork({ stream, filter }: Place): Promise<StoredMessage[]> {
    const { bus, runtime, config } = this.#deps;
    const since = runtime.clock.now() - Math.max(config.deadAfterMs, config.archiveAfterMs);
    const oldest = (await bus.read(stream, filter, 1, mostWork)) ?? [];
    return oldest.filter(({ at }) => at <= since);
  }

  async #isGone(place: Place, message: StoredMessage): Promise<boolean> {
    const work = decode(Work, message.body);
    if (work.kind === "invalid")
      return mayBeNewer(message) ? false : this.#bury(place, message, `not work: ${work.message}`);
    if (!(await this.#isOver(work.value.instanceId))) return false;
    return this.#deps.bus.deleteMessage(place.stream, message.seq);
  }

  /** Without a readable summary, the history decides whether there is such an instance. */
  async #isOver(instanceId: string): Promise<boolean> {
    const { registers, runtime, config } = this.#deps;
    const summary = await registers.instances.get(instanceId, { leader: true });
    if (summary) return endedBefore(summary.value, runtime.clock.now(), config.archiveAfterMs);
    return !(await this.#histories.exists(instanceId));
  }

  async #bury({ stream, what }: Place, message: StoredMessage, why: string): Promise<boolean> {
    const buried = await bury(this.#deps, message, { what, id: "unknown", code: "junk", message: why });
    return buried && this.#deps.bus.deleteMessage(stream, message.seq);
  }
}

const notSchedule = "not a schedule: only the engine writes to this subject, and no consumer reads it";

function mayBeNewer({ body }: StoredMessage): boolean {
  const parsed = parseJson(body);
  return parsed.kind === "ok" && Versioned.safeParse(parsed.value).success;
}
