/**
 * The calls of a pool, for one of its members. All members take from one queue, each as many calls as it can
 * use, so the least busy member takes the next call.
 *
 * MEMBER-1 A member holds no more calls than it can use at once: waiting calls stay in the queue, where every
 *    member sees them.
 * MEMBER-2 A call is acknowledged when its report is stored or its caller no longer waits; it is given back
 *    when its turn did not come here.
 * MEMBER-3 While a member holds a call, it keeps telling the server so; when this process dies, the call goes
 *    to another member after the acknowledgement wait.
 * MEMBER-4 A member that gives a call back is at its end and takes no more: it would get the same call again,
 *    at once, until that looked like poison.
 */
import type { PoolSignal } from "../../../../schemas/index.ts";
import { type ActivityTask, poolInstance, poolSignal } from "../../../../schemas/index.ts";
import { buryDelivery, type Consumption, type Delivery, encode } from "../../../../shared/bus/index.ts";
import type { AnySession } from "../../../../shared/definitions/index.ts";
import { announceFault, backoffMs, jittered, sleep, type Timer } from "../../../../shared/runtime/index.ts";
import {
  type Arrival,
  attemptKey,
  type CancelNotices,
  decodeTask,
  expiryOf,
  giveBack,
  type IsCancelled,
  isPoisoned,
  looksExpired,
  refuseExpired,
  refusePoisoned,
  refuseUnreadable,
} from "../../activities/index.ts";
import { batchRuleOf } from "../calls/call-limits.ts";
import type { Calls } from "../calls/calls.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { PoolGrowth, waitedEnoughMs } from "./pool-growth.ts";

/** Over all members together. */
const maxAckPending = 100_000;
const backoff = { initialMs: 100, maxMs: 5_000, factor: 2 };

export interface PoolFeedInit {
  deps: SessionDeps;
  timing: SessionTiming;
  cancels: Pick<CancelNotices, "covers">;
  poolId: string;
  definition: AnySession;
  calls: Pick<Calls, "lend" | "cancel" | "longestWaitMs">;
  /** The feed has stopped, and every call it held is settled. */
  onOver: (feed: PoolFeed) => void;
}

/** A call that this member holds. */
interface HeldCall {
  readonly task: ActivityTask;
  /** The latest delivery, if the call was delivered again meanwhile. */
  delivery: Delivery;
}

export class PoolFeed {
  readonly #init: PoolFeedInit;
  readonly #capacity: number;
  readonly #growth: PoolGrowth;
  readonly #stopping = new AbortController();
  /** Key: the attempt. */
  readonly #held = new Map<string, HeldCall>();
  /** Resolves when the feed is stopped and the server hands this member nothing more. */
  readonly #flowing: Promise<void>;
  #consumption: Consumption | undefined;
  #looking: Timer | undefined;
  #backlogSince: number | undefined;

  constructor(init: PoolFeedInit) {
    this.#init = init;
    this.#capacity = capacityOf(init.definition);
    this.#growth = new PoolGrowth(init.deps.runtime.clock, (waitedMs) => void this.#askForMore(waitedMs));
    this.#flowing = this.#flow();
  }

  /** Takes no more calls. The calls it holds are settled as they end. */
  stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    this.#looking?.cancel();
    void this.#consumption?.stop().catch((error: unknown) => this.#complain("end of a pool's queue", error));
    this.#overIfEmpty();
  }

  cancel(isCancelled: IsCancelled): void {
    for (const { task } of [...this.#held.values()]) if (isCancelled(task)) this.#init.calls.cancel(task);
  }

  /** MEMBER-3. */
  stillAtIt(): void {
    for (const { delivery } of this.#held.values()) delivery.working();
  }

  /** Runs until the feed is stopped: an unreachable server or a deleted consumer must not end a member. */
  async #flow(): Promise<void> {
    const { clock, random } = this.#init.deps.runtime;
    const { signal } = this.#stopping;
    for (let failed = 0; !signal.aborted; ) {
      try {
        const consumption = await this.#consume();
        failed = 0;
        this.#consumption = consumption;
        if (signal.aborted) return await consumption.stop();
        if ((await consumption.ended) === "stopped") return;
      } catch (error) {
        failed++;
        this.#complain("calls of a pool", error);
      }
      await sleep(clock, jittered(backoffMs(backoff, Math.max(1, failed)), random), signal);
    }
  }

  async #consume(): Promise<Consumption> {
    const { deps, timing, poolId } = this.#init;
    const { bus, names, config } = deps;
    const stream = names.activitiesStream;
    const name = names.poolConsumer(poolId);
    await bus.ensureConsumer({
      ...{ stream, name, filter: names.poolTasks(poolId), maxAckPending },
      ackWaitMs: config.activities.ackWaitMs,
      // Pools come and go; calls that wait in the stream are there for the next consumer.
      inactiveMs: timing.queueInactiveMs,
    });
    const onMessage = (delivery: Delivery) => this.#receive(delivery);
    return bus.consume(stream, name, { maxMessages: this.#capacity, onMessage }); // MEMBER-1
  }

  #receive(delivery: Delivery): void {
    const { deps, poolId } = this.#init;
    const name = delivery.subject.split(".").at(-1) ?? "";
    const decoded = decodeTask(delivery, { name });
    if (decoded.kind === "invalid") {
      if (!refuseUnreadable(deps, delivery, decoded)) {
        const { code, message } = decoded;
        void buryDelivery(deps, delivery, { what: "activity", id: poolId, code, message });
      }
      return;
    }
    if (this.#stopping.signal.aborted) return this.#turnAway(decoded.task, delivery);
    // An inactive consumer is removed, and with it the count of deliveries that shows whether a call was
    // begun.
    const arrival = { task: decoded.task, delivery, mayHaveBegun: true };
    if (looksExpired(deps, arrival)) void this.#sortUnlessExpired(arrival);
    else this.#sort(decoded.task, delivery);
  }

  async #sortUnlessExpired(arrival: Arrival): Promise<void> {
    const { deps, cancels } = this.#init;
    const { task, delivery } = arrival;
    const known = this.#held.has(attemptKey(task)) || cancels.covers(task);
    const expiry = known ? undefined : await expiryOf(deps, arrival);
    const { signal } = this.#stopping;
    if (expiry) await refuseExpired(deps, arrival, expiry, signal);
    else if (signal.aborted) this.#turnAway(task, delivery);
    else this.#sort(task, delivery);
  }

  /**
   * Gives back a call that arrives while the feed is being stopped. It waits until the server sends nothing more to
   * this member: otherwise the call would come here again (MEMBER-4).
   */
  #turnAway(task: ActivityTask, delivery: Delivery): void {
    void this.#flowing.then(() => giveBack(this.#init.deps, task, delivery));
  }

  #sort(task: ActivityTask, delivery: Delivery): void {
    const { deps, cancels } = this.#init;
    const known = this.#held.get(attemptKey(task));
    if (known)
      known.delivery = delivery; // no second run, and the newest delivery is the one to settle
    else if (cancels.covers(task)) delivery.ack();
    else if (delivery.deliveries > deps.config.activities.maxDeliveries)
      void this.#refuseIfPoisoned(task, delivery);
    else this.#accept(task, delivery);
  }

  /** Members that left gave the call back, which does not make it poison. */
  async #refuseIfPoisoned(task: ActivityTask, delivery: Delivery): Promise<void> {
    const { deps } = this.#init;
    const { signal } = this.#stopping;
    const poisoned = await isPoisoned(deps, task, delivery).catch(() => undefined);
    if (poisoned) await refusePoisoned(deps, task, delivery, signal);
    else if (signal.aborted) this.#turnAway(task, delivery);
    else if (poisoned === undefined) delivery.nak(backoff.initialMs);
    else this.#accept(task, delivery);
  }

  #accept(task: ActivityTask, delivery: Delivery): void {
    const key = attemptKey(task);
    const held: HeldCall = { task, delivery };
    this.#held.set(key, held);
    const { deliveries } = delivery;
    const settle = (how: "done" | "back") => {
      if (this.#held.get(key) !== held) return;
      if (how === "back") this.stop(); // MEMBER-4
      this.#held.delete(key);
      if (how === "done") held.delivery.ack();
      else void giveBack(this.#init.deps, task, held.delivery);
      this.#overIfEmpty();
    };
    switch (this.#init.calls.lend(task, { deliveries, settle })) {
      case "taken":
        if (deliveries === 1) this.#growth.waited(this.#waitedMs(delivery));
        this.#lookSoon();
        return;
      case "seen":
        return settle("done"); // answered before; only the acknowledgement was lost
      case "ended":
        return settle("back");
    }
  }

  #waitedMs({ at }: Delivery): number {
    return Math.max(0, this.#init.deps.runtime.clock.now() - at);
  }

  #lookSoon(): void {
    if (this.#stopping.signal.aborted) return;
    const { deps, timing } = this.#init;
    this.#looking ??= deps.runtime.clock.after(timing.poolLookMs, () => {
      this.#looking = undefined;
      if (this.#held.size === 0) return;
      void this.#look().finally(() => this.#lookSoon());
    });
  }

  /** A busy member receives no call that would show how long calls wait, so it asks the server. */
  async #look(): Promise<void> {
    if (!this.#growth.due) return;
    const here = this.#init.calls.longestWaitMs();
    if (here >= waitedEnoughMs) return this.#growth.waited(here);
    const { clock } = this.#init.deps.runtime;
    const since = this.#backlogSince;
    this.#backlogSince = undefined;
    if (this.#held.size < this.#capacity || !(await this.#hasBacklog())) return;
    this.#backlogSince = since ?? clock.monotonic();
    if (since !== undefined) this.#growth.waited(clock.monotonic() - since);
  }

  async #hasBacklog(): Promise<boolean> {
    const { deps, poolId } = this.#init;
    const { bus, names } = deps;
    try {
      const consumers = await bus.consumers(names.activitiesStream);
      const own = consumers.find(({ name }) => name === names.poolConsumer(poolId));
      return own !== undefined && own.pending > 0;
    } catch (error) {
      this.#complain("a look at a pool's queue", error);
      return false;
    }
  }

  /** A hint: if it gets lost, the next call that waits repeats it. */
  async #askForMore(waitedMs: number): Promise<void> {
    const { deps, poolId } = this.#init;
    const signal: PoolSignal = { kind: "grow", waitedMs };
    try {
      await deps.bus.publish(deps.names.signal(poolInstance(poolId), poolSignal), encode(signal));
    } catch (error) {
      this.#complain("growth of a pool", error);
    }
  }

  #overIfEmpty(): void {
    if (this.#stopping.signal.aborted && this.#held.size === 0) this.#init.onOver(this);
  }

  #complain(where: string, error: unknown): void {
    announceFault(this.#init.deps.runtime, where, error);
  }
}

/** Calls that run at a time, times the largest batch. */
function capacityOf(definition: AnySession): number {
  const sizes = Object.keys(definition.calls).map((name) => batchRuleOf(definition, name)?.maxSize ?? 1);
  return Math.max(1, definition.options.concurrency ?? 1) * Math.max(1, ...sizes);
}
