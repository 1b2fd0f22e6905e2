/** Attempts that this worker has reported: one that comes again, by the lane or by the queue, does not run again. */
import type { ActivityTask } from "../../../../schemas/index.ts";
import { type Clock, RecentTimes } from "../../../../shared/runtime/index.ts";
import { attemptKey } from "./held-task.ts";

const rememberedTasks = 4096;
/** Longer than an owner can be unsure whether an offer was taken. */
const reportedMs = 60_000;
/** Longer than a partition is without an owner. */
const inInboxMs = 600_000;

export class ReportedTasks {
  readonly #clock: Clock;
  readonly #reported = new RecentTimes(rememberedTasks, reportedMs);
  /**
   * Lane tasks reported through the inbox: an owner that asks must wait for the inbox and not send the task
   * again.
   */
  readonly #inInbox = new RecentTimes(rememberedTasks, inInboxMs);
  /** Capabilities of the tasks in `#inInbox`, at most as many. */
  readonly #capabilities = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `inInbox`: the task came by the lane, and its report is in the inbox of its instance. */
  add(task: ActivityTask, inInbox: boolean): void {
    const key = attemptKey(task);
    // This clock may be some milliseconds behind the one that dated the task.
    const at = Math.max(this.#clock.now(), task.scheduledAt);
    this.#reported.add(key, at);
    if (!inInbox) return;
    this.#inInbox.add(key, at);
    if (task.capability === undefined) return;
    const [oldest] = this.#capabilities.keys();
    if (oldest !== undefined && this.#capabilities.size >= rememberedTasks) this.#capabilities.delete(oldest);
    this.#capabilities.set(key, task.capability);
  }

  /** Compares the time it was scheduled, because instance ids may be used again. */
  has(task: ActivityTask): boolean {
    const key = attemptKey(task);
    const now = this.#clock.now();
    return (this.#reported.at(key, now) ?? this.#inInbox.at(key, now) ?? 0) >= task.scheduledAt;
  }

  /** The capability of an attempt whose report is in the inbox; undefined if there is no such report. */
  capabilityInInbox(key: string): string | undefined {
    if (this.#inInbox.at(key, this.#clock.now()) === undefined) return undefined;
    return this.#capabilities.get(key) ?? "";
  }
}
