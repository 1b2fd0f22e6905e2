/**
 * Runs plain activities: tasks come in by one feed per activity, take a slot, run, are reported, are
 * acknowledged.
 *
 * ACTIVITY-1 No more user code at a time than there are slots, over all activities.
 * ACTIVITY-2 A task is acknowledged only after its report is stored, or when its instance no longer waits
 *    (cancelled, dead-lettered).
 * ACTIVITY-3 While a worker holds a task, it confirms that to the server again and again; when this process dies, the task
 *    goes to another, after `ackWaitMs` at the latest. The server does not know a task that came by the lane:
 *    its owner asks the worker for it.
 * ACTIVITY-4 A task that cannot start soon is given back while others may have a slot, but never so often
 *    that it looks like poison.
 */
import type { ActivityTask } from "../../../schemas/index.ts";
import { buryDelivery, type Delivery } from "../../../shared/bus/index.ts";
import { CancelledError, HoldfastError, isCancelled } from "../../../shared/errors/index.ts";
import { announceFault, once, type Service, sleep, type Timer } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { LaneDelivery } from "../lane/index.ts";
import { LazyAbort } from "../lazy-abort.ts";
import { type Slot, Slots } from "../slots.ts";
import { Feed } from "./pulling/feed.ts";
import { LimitedPull } from "./pulling/limited-pull.ts";
import { PullOneByOne } from "./pulling/pull-one-by-one.ts";
import { RateLimiter } from "./pulling/rate-limiter.ts";
import { type ServedActivity, servedActivities } from "./pulling/served.ts";
import { WaitingLine } from "./pulling/waiting-line.ts";
import { giveBack } from "./refusing/count-returns.ts";
import { decodeTask } from "./refusing/decode-task.ts";
import { type Arrival, expiryOf, looksExpired, refuseExpired } from "./refusing/expired.ts";
import { isPoisoned, refusePoisoned } from "./refusing/poison.ts";
import { maybeSilent, silenceOf } from "./refusing/silent-tasks.ts";
import { refuseUnreadable } from "./refusing/unreadable.ts";
import { publishReport, type Report, reportOf } from "./report.ts";
import { CancelNotices, type IsCancelled, taskKey } from "./running/cancel-notices.ts";
import { attemptKey, type HeldTask, runsBefore } from "./running/held-task.ts";
import { ReportedTasks } from "./running/reported-tasks.ts";
import { runTask } from "./running/run-task.ts";
import { endOf, type TaskOutcome } from "./running/task-outcome.ts";
import { TaskLane } from "./task-lane.ts";

interface Running {
  readonly held: HeldTask;
  readonly abort: LazyAbort;
}

/** Time for aborted code to stop before the process exits. */
const lingerMs = 1_000;
const faultPauseMs = 1_000;
export class ActivityService implements Service {
  readonly slots: Slots;
  readonly served: readonly ServedActivity[];
  readonly #deps: WorkerDeps;
  readonly #feeds: Feed[];
  readonly #oneByOne: PullOneByOne;
  readonly #limited: LimitedPull[];
  readonly #lane: TaskLane;
  readonly #cancels: CancelNotices;
  /** Key: the attempt. */
  readonly #held = new Map<string, HeldTask>();
  readonly #reported: ReportedTasks;
  readonly #line: WaitingLine;
  readonly #running = new Set<Running>();
  readonly #lingering = new Set<Promise<unknown>>();
  readonly #givingUp = new AbortController();
  #keepAlive: Timer | undefined;
  #onIdle: (() => void) | undefined;
  #draining = false;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#reported = new ReportedTasks(deps.runtime.clock);
    this.slots = new Slots(deps.config.activities.slots, {
      onChange: deps.loadChanged,
      onFree: () => this.#oneByOne.pump(),
    });
    this.#oneByOne = new PullOneByOne(this.slots, (message, feed, slot) =>
      this.#receive(message, feed, slot),
    );
    this.#line = new WaitingLine({
      runtime: deps.runtime,
      slots: this.slots,
      limits: deps.config.activities,
      onSurplus: (feed) => this.#oneByOne.rest(feed),
      onLeft: (held) => this.#held.delete(held.key),
      giveBack: (held) => this.#giveBack(held),
    });
    this.#cancels = new CancelNotices(deps, (isCancelled) => this.#cancel(isCancelled));
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
      shown: (key) => {
        const held = this.#held.get(key);
        return held ? (held.task.capability ?? "") : this.#reported.capabilityInInbox(key);
      },
    });
  }

  /**
   * Starts answering which tasks this worker holds: before owners count on this worker, and before it holds
   * any task.
   */
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

  /** Takes no more tasks, lets running ones finish within the drain timeout, gives back the rest. */
  drain = once(async () => {
    this.#draining = true;
    this.#oneByOne.stop();
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
        void buryDelivery(this.#deps, delivery, {
          what: "activity",
          id: feed.activity.name,
          code: decoded.code,
          message: decoded.message,
        });
      return;
    }
    const { task } = decoded;
    const arrival = { task, delivery, mayHaveBegun: runsBefore(delivery) > 0 };
    if (looksExpired(this.#deps, arrival) || maybeSilent(arrival))
      void this.#enterUnlessExpired(arrival, feed, slot);
    else this.#enter(task, delivery, feed, slot);
  }

  async #enterUnlessExpired(arrival: Arrival, feed: Feed, slot: Slot | undefined): Promise<void> {
    const { task, delivery } = arrival;
    const known = this.#held.has(attemptKey(task)) || this.#isOver(task);
    const expiry = known
      ? undefined
      : ((await expiryOf(this.#deps, arrival)) ?? (await silenceOf(this.#deps, arrival)));
    if (!expiry) return this.#enter(task, delivery, feed, slot);
    slot?.release();
    if (expiry.timeout === "undecided") return delivery.nak(expiry.waitMs);
    await refuseExpired(this.#deps, arrival, expiry, this.#givingUp.signal);
  }

  /** Takes a lane task only if a slot is free at once, and not past tasks that wait for one. */
  #takeNow(task: ActivityTask, delivery: LaneDelivery, feed: Feed): boolean {
    if (this.#draining || feed.resting || feed.activity.definition.rate || this.slots.waiting > 0)
      return false;
    // Refuse, so that the owner sends the task by the queue, where this worker acknowledges the repeat.
    if (this.#isOver(task)) return false;
    const slot = this.slots.tryTake();
    if (!slot) return false;
    delivery.path.take();
    this.#enter(task, delivery, feed, slot);
    return true;
  }

  /**
   * Called when the task looks like poison by the server's count. It enters after all if leaving workers gave
   * it back.
   */
  async #refuseIfPoisoned(task: ActivityTask, delivery: Delivery, feed: Feed): Promise<void> {
    try {
      if (await isPoisoned(this.#deps, task, delivery))
        return await refusePoisoned(this.#deps, task, delivery, this.#givingUp.signal);
      this.#enter(task, delivery, feed, undefined, true);
    } catch (error) {
      // The outcome is unknown: the task comes again.
      delivery.nak(faultPauseMs);
      announceFault(this.#deps.runtime, "worker.poison", error, { code: "unknown" });
    }
  }

  #enter(task: ActivityTask, delivery: Delivery, feed: Feed, slot?: Slot, vouched = false): void {
    const { config } = this.#deps;
    const key = attemptKey(task);
    const known = this.#held.get(key);
    if (known) {
      // Delivered again while it is held here: no second run, and the newest delivery is the one to settle.
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
    const held: HeldTask = { key, task, feed, delivery, lane };
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

  /** The instance no longer waits for earlier attempts of this task. */
  #endEarlier(task: ActivityTask): void {
    for (const { held, abort } of this.#running) {
      if (held.task.attempt < task.attempt && taskKey(held.task) === taskKey(task)) {
        abort.abort(new CancelledError("the next attempt has begun"));
      }
    }
  }

  async #run(held: HeldTask, slot: Slot): Promise<void> {
    const running: Running = { held, abort: new LazyAbort() };
    this.#running.add(running);
    try {
      const outcome = await this.#work(running);
      slot.release();
      await this.#settle(held, outcome);
    } catch (error) {
      // An error of the engine, not of user code: the task must not be kept alive for ever.
      held.delivery.nak(faultPauseMs);
      announceFault(this.#deps.runtime, "worker.activity", error, { code: "bug" });
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
    // Not awaited: it only has to go out before the result does.
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

  async #settle(held: HeldTask, outcome: TaskOutcome): Promise<void> {
    switch (outcome.kind) {
      case "completed":
      case "failed":
      case "timeout":
      case "state_missing":
        await this.#reportAndSettle(held, reportOf(outcome));
        return;
      case "interrupted":
        if (isCancelled(outcome.reason)) held.delivery.ack();
        else await this.#giveBack(held);
        return;
    }
  }

  /** The task did nothing wrong, so the return must not count as poison. A lane task has no count. */
  #giveBack({ task, delivery, lane }: HeldTask): Promise<void> {
    if (!lane) return giveBack(this.#deps, task, delivery);
    delivery.nak();
    return Promise.resolve();
  }

  async #reportAndSettle(held: HeldTask, report: Report): Promise<void> {
    const how = await this.#report(held, report);
    if (how === "given_up") return;
    this.#reported.add(held.task, held.lane !== undefined && how === "stored");
    held.delivery.ack(); // ACTIVITY-2
  }

  /** True if the task was reported or cancelled. */
  #isOver(task: ActivityTask): boolean {
    return this.#reported.has(task) || this.#cancels.covers(task);
  }

  #report({ task, lane }: HeldTask, result: Report) {
    return publishReport(this.#deps, task, result, { lane, signal: this.#givingUp.signal });
  }

  #cancel(isCancelled: IsCancelled): void {
    for (const { held, abort } of this.#running) {
      if (isCancelled(held.task)) abort.abort(new CancelledError("the task was cancelled"));
    }
    this.#line.cancel(isCancelled);
  }

  /** ACTIVITY-3, for all tasks at once: most tasks are over before the first tick. */
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
    const timeout = new AbortController();
    await Promise.race([idle, sleep(this.#deps.runtime.clock, ms, timeout.signal)]);
    timeout.abort();
  }

  async #abandonAll(): Promise<void> {
    const reason = new HoldfastError({
      code: "worker_shutdown",
      message: "the worker is shutting down; another worker runs this again",
      retryable: true,
    });
    this.#givingUp.abort();
    for (const { abort } of this.#running) abort.abort(reason);
    await this.#idleWithin(lingerMs);
  }
}
