/**
 * When slots are scarce, feeds that took more than could start rest, and tasks are pulled one by one: first a
 * slot, then a task for it, from each resting feed in turn. A feed without further tasks flows again. So a
 * busy worker holds no task that an idle one could run, and no activity starves another.
 */
import type { Delivery } from "../../../../shared/bus/index.ts";
import type { Slot, Slots } from "../../slots.ts";
import type { Feed } from "./feed.ts";

/** The part of a feed that is needed here. */
export type RestingFeed = Pick<Feed, "resting" | "rest" | "flow" | "next">;

/** How long a slot waits for a task of one feed before the next feed is asked. */
const askMs = 100;

export class PullOneByOne<F extends RestingFeed = Feed> {
  readonly #slots: Slots;
  readonly #onMessage: (message: Delivery, feed: F, slot: Slot) => void;
  readonly #resting: F[] = [];
  #stopped = false;

  constructor(slots: Slots, onMessage: (message: Delivery, feed: F, slot: Slot) => void) {
    this.#slots = slots;
    this.#onMessage = onMessage;
  }

  rest(feed: F): void {
    if (this.#stopped || feed.resting) return;
    feed.rest();
    this.#resting.push(feed);
    this.pump();
  }

  /** Call when a slot may have come free. */
  pump(): void {
    while (!this.#stopped) {
      const [feed] = this.#resting;
      const slot = feed && this.#slots.tryTake();
      if (!slot) return;
      this.#resting.shift();
      void this.#pull(feed, slot);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #pull(feed: F, slot: Slot): Promise<void> {
    const message = await feed.next(askMs);
    if (message) {
      this.#resting.push(feed);
      this.#onMessage(message, feed, slot);
      this.pump();
      return;
    }
    feed.flow();
    slot.release();
  }
}
