import { expect, it } from "vitest";
import {
  PullOneByOne,
  type RestingFeed,
} from "../../../services/worker/activities/pulling/pull-one-by-one.ts";
import { type Slot, Slots } from "../../../services/worker/slots.ts";
import type { Delivery } from "../../../shared/bus/index.ts";

/** A feed with so many tasks waiting in its queue. */
class CountedFeed implements RestingFeed {
  resting = false;
  asked = 0;
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  rest(): void {
    this.resting = true;
  }

  flow(): void {
    this.resting = false;
  }

  async next(): Promise<Delivery | undefined> {
    this.asked++;
    return this.left-- > 0 ? ({} as Delivery) : undefined;
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("asks for a task only with a slot in hand, each feed in turn, and leaks none", async () => {
  const feeds = [new CountedFeed(4), new CountedFeed(4)];
  const running: { feed: CountedFeed; slot: Slot }[] = [];
  const slots = new Slots(3, { onFree: () => scarcity.pump() });
  const scarcity = new PullOneByOne<CountedFeed>(slots, (_message, feed, slot) =>
    running.push({ feed, slot }),
  );
  for (const feed of feeds) scarcity.rest(feed);
  await turn();
  expect(running).toHaveLength(3);
  expect(new Set(running.map(({ feed }) => feed)).size).toBe(2);
  for (let ended = 0; ended < 8; ended++) {
    running.shift()?.slot.release();
    await turn();
    expect(slots.used).toBe(Math.min(3, 8 - ended - 1));
  }
  expect(feeds.map((feed) => feed.resting)).toEqual([false, false]);
  expect(slots.used).toBe(0);
});

it("takes no slot for feeds while another already used it up", async () => {
  const slots = new Slots(5, { onFree: () => scarcity.pump() });
  const scarcity = new PullOneByOne<CountedFeed>(slots, (_message, _feed, slot) => slot.release());
  scarcity.rest(new CountedFeed(2));
  await turn();
  expect(slots.used).toBe(0);
});
