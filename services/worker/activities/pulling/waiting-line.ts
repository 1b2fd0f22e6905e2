/**
 * Tasks that were pulled and found no slot. They wait a little; then their feed rests and they are given
 * back, because other workers may have a slot. A task given back is delivered once more and must not look
 * like poison for that, so a task that was delivered several times already is kept until its turn comes.
 */
import type { Runtime, Timer } from "../../../../shared/runtime/index.ts";
import type { WorkerConfig } from "../../config.ts";
import type { Slot, Slots, Waiter } from "../../slots.ts";
import type { IsCancelled } from "../running/cancel-notices.ts";
import type { HeldTask } from "../running/held-task.ts";
import type { Feed } from "./feed.ts";

interface WaitingTask {
  readonly held: HeldTask;
  readonly waiter: Waiter;
  readonly surplusTimer: Timer;
}

interface WaitingLineInit {
  runtime: Runtime;
  slots: Slots;
  limits: Pick<WorkerConfig["activities"], "surplusWaitMs" | "maxDeliveries">;
  /** Called when this feed brings more tasks than can start. */
  onSurplus: (feed: Feed) => void;
  /** Called when this worker is leaving: gives the task back without counting against it. */
  giveBack: (held: HeldTask) => Promise<void>;
  /** Called when this worker no longer holds the task. */
  onLeft: (held: HeldTask) => void;
}

const mostHandBacks = 2;

export class WaitingLine {
  readonly #init: WaitingLineInit;
  readonly #waiting = new Set<WaitingTask>();
  readonly #handBackUntilDelivery: number;

  constructor(init: WaitingLineInit) {
    this.#init = init;
    this.#handBackUntilDelivery = Math.min(mostHandBacks, init.limits.maxDeliveries - 1);
  }

  add(held: HeldTask, onSlot: (slot: Slot) => void): void {
    const { runtime, slots, limits } = this.#init;
    const surplusTimer = runtime.clock.after(limits.surplusWaitMs, () => this.#surplus(held.feed));
    let given = false;
    let waiting: WaitingTask | undefined;
    const waiter = slots.request((slot) => {
      given = true;
      if (waiting) this.#waiting.delete(waiting);
      surplusTimer.cancel();
      onSlot(slot);
    });
    waiting = { held, waiter, surplusTimer };
    if (!given) this.#waiting.add(waiting);
  }

  /** Settles the tasks with this key without running them, because their instance no longer waits. */
  cancel(isCancelled: IsCancelled): void {
    for (const waiting of this.#waiting) {
      if (!isCancelled(waiting.held.task)) continue;
      this.#remove(waiting);
      waiting.held.delivery.ack();
    }
  }

  async handBackAll(): Promise<void> {
    await Promise.all([...this.#waiting].map((waiting) => this.#handBack(waiting, "drain")));
  }

  #surplus(feed: Feed): void {
    this.#init.onSurplus(feed);
    for (const waiting of this.#waiting) {
      const { held } = waiting;
      if (held.feed === feed && held.delivery.deliveries <= this.#handBackUntilDelivery) {
        void this.#handBack(waiting, "surplus");
      }
    }
  }

  async #handBack(waiting: WaitingTask, why: "surplus" | "drain"): Promise<void> {
    const { held } = waiting;
    this.#remove(waiting);
    if (why === "surplus") held.delivery.nak();
    else await this.#init.giveBack(held);
    const { instanceId, name, of } = held.task;
    this.#init.runtime.announce({ kind: "activity.handed_back", instanceId, name, of, why });
  }

  #remove(waiting: WaitingTask): void {
    waiting.surplusTimer.cancel();
    waiting.waiter.leave();
    this.#waiting.delete(waiting);
    this.#init.onLeft(waiting.held);
  }
}
