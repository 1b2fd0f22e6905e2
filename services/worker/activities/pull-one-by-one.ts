/**
 * When slots are scarce, feeds that took more than could start rest, and tasks are pulled one by one: a slot first, then
 * a task for it, each resting feed in turn. A feed that has nothing more flows again. So a busy worker hoards nothing
 * that an idle one could run, and no activity starves another.
 */
import type { Delivery } from "../../../shared/bus/bus.ts";
import type { Slot, Slots } from "../slots.ts";
import type { Feed } from "./feed.ts";

/** What is needed of a feed here. */
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

  /** A slot may have come free. */
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
