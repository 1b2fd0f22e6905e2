/**
 * Runs plain activities: tasks come in by one feed per activity, take a slot, run, are reported, are acknowledged.
 *
 * A1 No more user code at a time than there are slots, over all activities.
 * A2 A task is acknowledged only after its report is stored, or when nobody waits for it (cancelled, dead-lettered).
 * A3 While it is held, the server is told so; when this process dies, the task goes to another after `ackWaitMs`.
 * A4 What cannot start soon is given back while others may have a slot, but never so often that it looks like poison.
 */
import type { ActivityTask } from "../../../schemas/index.ts";
import type { Delivery } from "../../../shared/bus/bus.ts";
import { CancelledError, HoldfastError, isCancelled } from "../../../shared/errors/index.ts";
import { once, type Service, sleep, type Timer } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { type Slot, Slots, type Waiter } from "../slots.ts";
import { CancelNotices, taskKey } from "./cancel-notices.ts";
import { deadLetter } from "./dead-letter.ts";
import { decodeTask } from "./decode-task.ts";
import { Feed } from "./feed.ts";
import { publishReport, reportOf } from "./report.ts";
import { runTask } from "./run-task.ts";
import { Scarcity } from "./scarcity.ts";
import { type ServedActivity, servedActivities } from "./served.ts";
import type { TaskOutcome } from "./task-outcome.ts";

/** A task handed out to this worker and not settled yet. */
interface Held {
  readonly task: ActivityTask;
  readonly feed: Feed;
  /** The latest, where it was delivered again while we had it. */
  delivery: Delivery;
}

interface Waiting {
  readonly held: Held;
  readonly waiter: Waiter;
  readonly patience: Timer;
}

interface Running {
  readonly held: Held;
  readonly controller: AbortController;
}

/** A task given back will be delivered once more; from here on it is kept until a slot comes free (A4). */
const handBackUntilDelivery = 2;
/** For code that was told to stop, before the process goes. */
const lingerMs = 1_000;

export class ActivityService implements Service {
  readonly slots: Slots;
  readonly served: readonly ServedActivity[];
  readonly #deps: WorkerDeps;
  readonly #feeds: Feed[];
  readonly #scarcity: Scarcity;
  readonly #cancels: CancelNotices;
  /** By attempt. */
  readonly #held = new Map<string, Held>();
  readonly #waiting = new Set<Waiting>();
  readonly #running = new Set<Running>();
  readonly #lingering = new Set<Promise<unknown>>();
  readonly #givingUp = new AbortController();
  #keepAlive: Timer | undefined;
  #onIdle: (() => void) | undefined;
  #draining = false;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.slots = new Slots(deps.config.activities.slots, () => {
      deps.loadChanged();
      this.#scarcity.pump();
    });
    this.#scarcity = new Scarcity(this.slots, (message, feed, slot) => this.#receive(message, feed, slot));
    this.#cancels = new CancelNotices(deps, (key) => this.#cancel(key));
    this.served = servedActivities(deps.app, deps.config);
    this.#feeds = this.served.map(
      (activity) => new Feed(deps, activity, (message, feed) => this.#receive(message, feed)),
    );
  }

  async start(): Promise<void> {
    if (this.#feeds.length === 0) return;
    await this.#cancels.start();
    this.#tick();
    await Promise.all(this.#feeds.map((feed) => feed.start()));
  }

  /** Takes nothing more, finishes what runs, at most so long; gives back the rest. */
  drain = once(async () => {
    this.#draining = true;
    this.#scarcity.stop();
    await Promise.all(this.#feeds.map((feed) => feed.stop()));
    for (const waiting of this.#waiting) this.#handBack(waiting, "drain");
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
    await this.#cancels.stop();
  });

  #receive(delivery: Delivery, feed: Feed, slot?: Slot): void {
    const { config } = this.#deps;
    const decoded = decodeTask(delivery, feed.activity);
    if (decoded.kind === "invalid") {
      slot?.release();
      void deadLetter(this.#deps, delivery, feed.activity.name, decoded);
      return;
    }
    const { task } = decoded;
    const known = this.#known(task);
    if (known) {
      // Delivered again while it is here: no second run, and the newest delivery is the one to settle.
      slot?.release();
      known.delivery = delivery;
      return;
    }
    if (this.#cancels.covers(task)) {
      slot?.release();
      delivery.ack();
      return;
    }
    const held: Held = { task, feed, delivery };
    if (delivery.deliveries > config.activities.maxDeliveries) {
      slot?.release();
      void this.#poisoned(held);
    } else if (this.#draining) {
      slot?.release();
      delivery.nak();
    } else {
      this.#held.set(attemptKey(task), held);
      const taken = slot ?? this.slots.tryTake();
      if (taken) void this.#run(held, taken);
      else this.#wait(held);
    }
  }

  /** The same attempt, if it is here already. An attempt before it is of no use to anybody any more. */
  #known(task: ActivityTask): Held | undefined {
    if (task.attempt > 1) {
      for (const { held, controller } of this.#running) {
        if (held.task.attempt < task.attempt && taskKey(held.task) === taskKey(task)) {
          controller.abort(new CancelledError("the next attempt has begun"));
        }
      }
    }
    return this.#held.get(attemptKey(task));
  }

  #wait(held: Held): void {
    const waiter = this.slots.request((slot) => {
      this.#waiting.delete(waiting);
      waiting.patience.cancel();
      void this.#run(held, slot);
    });
    const { clock } = this.#deps.runtime;
    const patience = clock.after(this.#deps.config.activities.surplusWaitMs, () => this.#rest(held.feed));
    const waiting: Waiting = { held, waiter, patience };
    this.#waiting.add(waiting);
  }

  /** A4: what this feed brought could not start soon. */
  #rest(feed: Feed): void {
    const latest = Math.min(handBackUntilDelivery, this.#deps.config.activities.maxDeliveries - 1);
    this.#scarcity.rest(feed);
    for (const waiting of this.#waiting) {
      const { held } = waiting;
      if (held.feed === feed && held.delivery.deliveries <= latest) this.#handBack(waiting, "surplus");
    }
  }

  #handBack(waiting: Waiting, why: "surplus" | "drain"): void {
    const { held, waiter, patience } = waiting;
    patience.cancel();
    waiter.leave();
    this.#waiting.delete(waiting);
    this.#held.delete(attemptKey(held.task));
    held.delivery.nak();
    const { instanceId, name, of } = held.task;
    this.#deps.runtime.announce({ kind: "activity.handed_back", instanceId, name, of, why });
  }

  async #run(held: Held, slot: Slot): Promise<void> {
    const { runtime } = this.#deps;
    const { task, feed } = held;
    const { instanceId, name, of, attempt } = task;
    const controller = new AbortController();
    const running: Running = { held, controller };
    this.#running.add(running);
    const startedAt = runtime.clock.monotonic();
    const { deliveries } = held.delivery;
    runtime.announce({
      kind: "activity.started",
      instanceId,
      name,
      of,
      attempt,
      redelivered: deliveries > 1,
      waitedMs: Math.max(0, runtime.clock.now() - task.scheduledAt),
    });
    // Not waited for: it goes out before the result does, and that is all that matters.
    if (task.reportStart) void this.#report(task, { kind: "started" });
    const { definition } = feed.activity;
    const outcome = await runTask(this.#deps, task, {
      input: definition.input,
      output: definition.output,
      run: definition.run,
      controller,
      deliveries,
      onAbandoned: (finished) => this.#linger(finished),
    });
    slot.release();
    const ms = runtime.clock.monotonic() - startedAt;
    runtime.announce({
      kind: "activity.ended",
      instanceId,
      name,
      of,
      attempt,
      outcome: endOf(outcome),
      ms,
    });
    await this.#settle(held, outcome);
    this.#running.delete(running);
    this.#held.delete(attemptKey(task));
    if (this.#running.size === 0) this.#onIdle?.();
  }

  async #settle(held: Held, outcome: TaskOutcome): Promise<void> {
    switch (outcome.kind) {
      case "completed":
      case "failed":
      case "timeout":
      case "state_missing":
        if ((await this.#report(held.task, reportOf(outcome))) === "stored") held.delivery.ack(); // A2
        return;
      case "interrupted":
        if (isCancelled(outcome.reason)) held.delivery.ack();
        else held.delivery.nak();
        return;
    }
  }

  #report(task: ActivityTask, result: Parameters<typeof publishReport>[2]) {
    return publishReport(this.#deps, task, result, { signal: this.#givingUp.signal });
  }

  async #poisoned({ task, delivery }: Held): Promise<void> {
    const { instanceId, name, of } = task;
    const { deliveries } = delivery;
    const message = `${name} was handed out ${deliveries - 1} times and no worker lived to answer`;
    const error = { code: "poisoned", message, retryable: false };
    if ((await this.#report(task, { kind: "failed", error })) !== "stored") return;
    this.#deps.runtime.announce({ kind: "activity.poisoned", instanceId, name, of, deliveries });
    await deadLetter(this.#deps, delivery, instanceId, error);
  }

  #cancel(key: string): void {
    for (const { held, controller } of this.#running) {
      if (taskKey(held.task) === key) controller.abort(new CancelledError("the task was cancelled"));
    }
    for (const waiting of this.#waiting) {
      if (taskKey(waiting.held.task) !== key || !waiting.waiter.leave()) continue;
      waiting.patience.cancel();
      this.#waiting.delete(waiting);
      this.#held.delete(attemptKey(waiting.held.task));
      waiting.held.delivery.ack();
    }
  }

  /** A3, for all at once: most tasks are over before the first tick. */
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
    for (const { controller } of this.#running) controller.abort(reason);
    await this.#idleWithin(lingerMs);
  }
}

const attemptKey = (task: ActivityTask): string => `${taskKey(task)}.${task.attempt}`;

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
