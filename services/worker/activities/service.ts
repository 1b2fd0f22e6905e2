/**
 * Runs plain activities: tasks come in by one feed per activity, take a slot, run, are reported, are acknowledged.
 *
 * ACTIVITY-1 No more user code at a time than there are slots, over all activities.
 * ACTIVITY-2 A task is acknowledged only after its report is stored, or when nobody waits for it (cancelled, dead-lettered).
 * ACTIVITY-3 While it is held, the server is told so; when this process dies, the task goes to another, after `ackWaitMs` at the latest.
 *    What came by the lane has no server to tell: its owner asks whether it is still here.
 * ACTIVITY-4 What cannot start soon is given back while others may have a slot, but never so often that it looks like poison.
 */
import type { ActivityTask } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/index.ts";
import { CancelledError, HoldfastError, isCancelled } from "../../../shared/errors/index.ts";
import { once, type Service, sleep, type Timer } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { LaneDelivery } from "../lane/index.ts";
import { LazyAbort } from "../lazy-abort.ts";
import { RecentTimes } from "../recent-times.ts";
import { type Slot, Slots } from "../slots.ts";
import { CancelNotices, taskKey } from "./cancel-notices.ts";
import { deadLetter } from "./dead-letter.ts";
import { decodeTask } from "./decode-task.ts";
import { type Arrival, expiryOf, looksExpired, refuseExpired } from "./expired.ts";
import { Feed } from "./feed.ts";
import { attemptKey, type Held, runsBefore } from "./held-task.ts";
import { LimitedPull } from "./limited-pull.ts";
import { isPoisoned, refusePoisoned } from "./poison.ts";
import { PullOneByOne } from "./pull-one-by-one.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { publishReport, type Report, reportOf } from "./report.ts";
import { giveBack } from "./returns.ts";
import { runTask } from "./run-task.ts";
import { type ServedActivity, servedActivities } from "./served.ts";
import { TaskLane } from "./task-lane.ts";
import type { TaskOutcome } from "./task-outcome.ts";
import { refuseUnreadable } from "./unreadable.ts";
import { WaitingLine } from "./waiting-line.ts";

interface Running {
  readonly held: Held;
  readonly abort: LazyAbort;
}

/** For code that was told to stop, before the process goes. */
const lingerMs = 1_000;
const faultPauseMs = 1_000;
const rememberedTasks = 4096;
/** Longer than an owner is unsure whether an offer was taken. */
const toldMs = 60_000;
/** Longer than a partition is without an owner. */
const storedMs = 600_000;

export class ActivityService implements Service {
  readonly slots: Slots;
  readonly served: readonly ServedActivity[];
  readonly #deps: WorkerDeps;
  readonly #feeds: Feed[];
  readonly #scarcity: PullOneByOne;
  readonly #limited: LimitedPull[];
  readonly #lane: TaskLane;
  readonly #cancels: CancelNotices;
  /** By attempt. */
  readonly #held = new Map<string, Held>();
  /** Told: if it comes again, by the lane or by the queue, it is not run again. */
  readonly #told = new RecentTimes(rememberedTasks, toldMs);
  /** Of these, came by the lane and told by the inbox: an owner that asks must wait for what is there, not send it out again. */
  readonly #stored = new RecentTimes(rememberedTasks, storedMs);
  readonly #line: WaitingLine;
  readonly #running = new Set<Running>();
  readonly #lingering = new Set<Promise<unknown>>();
  readonly #givingUp = new AbortController();
  #keepAlive: Timer | undefined;
  #onIdle: (() => void) | undefined;
  #draining = false;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.slots = new Slots(deps.config.activities.slots, {
      onChange: deps.loadChanged,
      onFree: () => this.#scarcity.pump(),
    });
    this.#scarcity = new PullOneByOne(this.slots, (message, feed, slot) =>
      this.#receive(message, feed, slot),
    );
    this.#line = new WaitingLine({
      runtime: deps.runtime,
      slots: this.slots,
      limits: deps.config.activities,
      onSurplus: (feed) => this.#scarcity.rest(feed),
      onLeft: (held) => this.#held.delete(held.key),
      giveBack: (held) => this.#giveBack(held),
    });
    this.#cancels = new CancelNotices(deps, (key) => this.#cancel(key));
    this.served = servedActivities(deps.app, deps.config);
    this.#feeds = this.served.map(
      (activity) => new Feed(deps, activity, (message, feed) => this.#receive(message, feed)),
    );
    const limiter = new RateLimiter(deps);
    this.#limited = this.#feeds.flatMap((feed) => {
      const { rate } = feed.activity.definition;
      return rate
        ? [new LimitedPull(deps, feed, rate, limiter, (message) => this.#receive(message, feed))]
        : [];
    });
    this.#lane = new TaskLane({
      deps,
      feeds: this.#feeds,
      onTask: (task, delivery, feed) => this.#takeNow(task, delivery, feed),
      has: (key) => this.#held.has(key) || this.#stored.at(key, deps.runtime.clock.now()) !== undefined,
    });
  }

  /** Answers what it holds: before anybody counts on it, and before anything is held. */
  async listen(): Promise<void> {
    if (this.#feeds.length > 0) await this.#lane.listen();
  }

  async start(): Promise<void> {
    if (this.#feeds.length === 0) return;
    await this.#cancels.start();
    this.#tick();
    const free = this.#feeds.filter(({ activity }) => !activity.definition.rate);
    await Promise.all([...free, ...this.#limited].map((feed) => feed.start()));
    await this.#lane.start();
  }

  /** Takes nothing more, finishes what runs, at most so long; gives back the rest. */
  drain = once(async () => {
    this.#draining = true;
    this.#scarcity.stop();
    await Promise.all([this.#lane.close(), ...this.#feeds.map((feed) => feed.stop())]);
    await Promise.all(this.#limited.map((pull) => pull.stop()));
    await this.#line.handBackAll();
    if (this.#running.size > 0) await this.#idleWithin(this.#deps.config.drainTimeoutMs);
    if (this.#running.size > 0) await this.#abandonAll();
    if (this.#lingering.size > 0) {
      const settled = Promise.allSettled(this.#lingering);
      await Promise.race([settled, sleep(this.#deps.runtime.clock, lingerMs)]);
    }
  });

  stop = once(async () => {
    await this.drain();
    this.#keepAlive?.cancel();
    await this.#lane.stop();
    await this.#cancels.stop();
  });

  #receive(delivery: Delivery, feed: Feed, slot?: Slot): void {
    const decoded = decodeTask(delivery, feed.activity);
    if (decoded.kind === "invalid") {
      slot?.release();
      if (!refuseUnreadable(this.#deps, delivery, decoded))
        void deadLetter(this.#deps, delivery, feed.activity.name, decoded);
      return;
    }
    const { task } = decoded;
    const arrival = { task, delivery, mayHaveBegun: runsBefore(delivery) > 0 };
    if (looksExpired(this.#deps, arrival)) void this.#enterUnlessExpired(arrival, feed, slot);
    else this.#enter(task, delivery, feed, slot);
  }

  async #enterUnlessExpired(arrival: Arrival, feed: Feed, slot: Slot | undefined): Promise<void> {
    const { task, delivery } = arrival;
    const expiry =
      this.#held.has(attemptKey(task)) || this.#isOver(task)
        ? undefined
        : await expiryOf(this.#deps, arrival);
    if (!expiry) return this.#enter(task, delivery, feed, slot);
    slot?.release();
    await refuseExpired(this.#deps, arrival, expiry, this.#givingUp.signal);
  }

  /** By the lane: only with a slot at once, and not past those that wait for one. */
  #takeNow(task: ActivityTask, delivery: LaneDelivery, feed: Feed): boolean {
    if (this.#draining || feed.resting || feed.activity.definition.rate || this.slots.waiting > 0)
      return false;
    // The owner must hear that it does not run here: by the queue it is settled.
    if (this.#isOver(task)) return false;
    const slot = this.slots.tryTake();
    if (!slot) return false;
    delivery.path.take();
    this.#enter(task, delivery, feed, slot);
    return true;
  }

  /** Only the server's count says so at first: asked, and entered after all where leaving workers gave it back. */
  async #refuseIfPoisoned(task: ActivityTask, delivery: Delivery, feed: Feed): Promise<void> {
    try {
      if (await isPoisoned(this.#deps, task, delivery))
        return await refusePoisoned(this.#deps, task, delivery, this.#givingUp.signal);
      this.#enter(task, delivery, feed, undefined, true);
    } catch (error) {
      // Nothing is known: it comes again.
      delivery.nak(faultPauseMs);
      const message = error instanceof Error ? error.message : String(error);
      this.#deps.runtime.announce({ kind: "fault", where: "worker.poison", code: "unknown", message, error });
    }
  }

  #enter(task: ActivityTask, delivery: Delivery, feed: Feed, slot?: Slot, vouched = false): void {
    const { config } = this.#deps;
    const key = attemptKey(task);
    const known = this.#held.get(key);
    if (known) {
      // Delivered again while it is here: no second run, and the newest delivery is the one to settle.
      slot?.release();
      known.delivery = delivery;
      return;
    }
    if (this.#isOver(task)) {
      slot?.release();
      delivery.ack();
      return;
    }
    if (task.attempt > 1) this.#endEarlier(task);
    const lane = delivery instanceof LaneDelivery ? delivery.path : undefined;
    const held: Held = { key, task, feed, delivery, lane };
    if (!vouched && delivery.deliveries > config.activities.maxDeliveries) {
      slot?.release();
      void this.#refuseIfPoisoned(task, delivery, feed);
    } else if (this.#draining) {
      slot?.release();
      void this.#giveBack(held);
    } else {
      this.#held.set(key, held);
      const taken = slot ?? this.slots.tryTake();
      if (taken) void this.#run(held, taken);
      else this.#line.add(held, (given) => void this.#run(held, given));
    }
  }

  /** An attempt before this one is of no use to anybody any more. */
  #endEarlier(task: ActivityTask): void {
    for (const { held, abort } of this.#running) {
      if (held.task.attempt < task.attempt && taskKey(held.task) === taskKey(task)) {
        abort.abort(new CancelledError("the next attempt has begun"));
      }
    }
  }

  async #run(held: Held, slot: Slot): Promise<void> {
    const running: Running = { held, abort: new LazyAbort() };
    this.#running.add(running);
    try {
      const outcome = await this.#work(running);
      slot.release();
      await this.#settle(held, outcome);
    } catch (error) {
      // Ours, not the user's: whatever it was, the task must not be kept alive for ever.
      held.delivery.nak(faultPauseMs);
      const message = error instanceof Error ? error.message : String(error);
      this.#deps.runtime.announce({ kind: "fault", where: "worker.activity", code: "bug", message, error });
    } finally {
      slot.release();
      this.#running.delete(running);
      this.#held.delete(held.key);
      if (this.#running.size === 0) this.#onIdle?.();
    }
  }

  async #work({ held, abort }: Running): Promise<TaskOutcome> {
    const { clock, announce } = this.#deps.runtime;
    const { task, feed } = held;
    const deliveries = runsBefore(held.delivery) + 1;
    const { definition } = feed.activity;
    const { instanceId, name, of, attempt } = task;
    const startedAt = clock.monotonic();
    const waitedMs = Math.max(0, clock.now() - task.scheduledAt);
    const redelivered = deliveries > 1;
    announce({ kind: "activity.started", instanceId, name, of, attempt, redelivered, waitedMs });
    // Not waited for: it goes out before the result does, and that is all that matters.
    if (task.reportStart) void this.#report(held, { kind: "started" });
    const outcome = await runTask(this.#deps, task, {
      input: definition.input,
      output: definition.output,
      run: (ctx, input) => definition.run(ctx, input),
      abort,
      scheduleToCloseMs: task.timeouts.scheduleToCloseMs,
      deliveries,
      onAbandoned: (finished) => this.#linger(finished),
    });
    const ms = clock.monotonic() - startedAt;
    const { traceparent } = task;
    const end = endOf(outcome);
    announce({ kind: "activity.ended", instanceId, name, of, attempt, outcome: end, ms, traceparent });
    return outcome;
  }

  async #settle(held: Held, outcome: TaskOutcome): Promise<void> {
    switch (outcome.kind) {
      case "completed":
      case "failed":
      case "timeout":
      case "state_missing":
        await this.#tell(held, reportOf(outcome));
        return;
      case "interrupted":
        if (isCancelled(outcome.reason)) held.delivery.ack();
        else await this.#giveBack(held);
        return;
    }
  }

  /** Not this task's fault: it must not count as poison. What came by the lane has no count. */
  #giveBack({ task, delivery, lane }: Held): Promise<void> {
    if (!lane) return giveBack(this.#deps, task, delivery);
    delivery.nak();
    return Promise.resolve();
  }

  async #tell(held: Held, report: Report): Promise<void> {
    const how = await this.#report(held, report);
    if (how === "given_up") return;
    const now = this.#deps.runtime.clock.now();
    this.#told.add(held.key, now);
    if (held.lane && how === "stored") this.#stored.add(held.key, now);
    held.delivery.ack(); // ACTIVITY-2
  }

  /** Told, or called off. */
  #isOver(task: ActivityTask): boolean {
    return this.#wasTold(task) || this.#cancels.covers(task);
  }

  /** By the time it was scheduled: ids of instances may be used again one day. */
  #wasTold(task: ActivityTask): boolean {
    const key = attemptKey(task);
    const now = this.#deps.runtime.clock.now();
    return (this.#told.at(key, now) ?? this.#stored.at(key, now) ?? 0) >= task.scheduledAt;
  }

  #report({ task, lane }: Held, result: Report) {
    return publishReport(this.#deps, task, result, { lane, signal: this.#givingUp.signal });
  }

  #cancel(key: string): void {
    for (const { held, abort } of this.#running) {
      if (taskKey(held.task) === key) abort.abort(new CancelledError("the task was cancelled"));
    }
    this.#line.cancel(key);
  }

  /** ACTIVITY-3, for all at once: most tasks are over before the first tick. */
  #tick(): void {
    const { clock } = this.#deps.runtime;
    this.#keepAlive = clock.after(this.#deps.config.activities.ackWaitMs / 3, () => {
      for (const held of this.#held.values()) held.delivery.working();
      this.#tick();
    });
  }

  #linger(finished: Promise<unknown>): void {
    this.#lingering.add(finished);
    void finished.then(() => this.#lingering.delete(finished));
  }

  async #idleWithin(ms: number): Promise<void> {
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    const patience = new AbortController();
    await Promise.race([idle, sleep(this.#deps.runtime.clock, ms, patience.signal)]);
    patience.abort();
  }

  async #abandonAll(): Promise<void> {
    const reason = new HoldfastError({
      code: "worker_shutdown",
      message: "the worker is going; another one runs this again",
      retryable: true,
    });
    this.#givingUp.abort();
    for (const { abort } of this.#running) abort.abort(reason);
    await this.#idleWithin(lingerMs);
  }
}

function endOf(outcome: TaskOutcome): "completed" | "failed" | "cancelled" | "timeout" {
  switch (outcome.kind) {
    case "completed":
    case "failed":
    case "timeout":
      return outcome.kind;
    case "state_missing":
      return "failed";
    case "interrupted":
      return "cancelled";
  }
}
