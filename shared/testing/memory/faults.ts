/** What can go wrong between a client and the broker, as probabilities, and how often it did (I18). */
import type { Random } from "../../runtime/index.ts";

export interface BusFaults {
  /** Each way, between these two. */
  latencyMs: readonly [min: number, max: number];
  /** Not stored, and the publisher hears nothing. */
  publishLost: number;
  /** Stored, and the publisher hears nothing (F29). */
  publishUnanswered: number;
  /** The publisher hears nothing, and it is stored long after. */
  publishLate: number;
  /** The acknowledgement does not arrive. */
  ackLost: number;
  /** Handed out twice. */
  deliveredTwice: number;
  /** Handed out and never arrived: comes again after the acknowledgement wait. */
  deliveryLost: number;
  /** A delivery is held up, at most so long. */
  deliveryDelayed: number;
  deliveryDelayMs: number;
  /** A plain message does not arrive. */
  plainLost: number;
  /** A plain message arrives twice, or late, behind what was sent after it. */
  plainTwice: number;
  plainDelayed: number;
  plainDelayMs: number;
  /** Expiry is noticed so much late. */
  markerDelayMs: readonly [min: number, max: number];
  /** Schedules fire so much late. */
  scheduleDelayMs: readonly [min: number, max: number];
  /** Where a stream has several copies: whoever does not ask the leader is shown what was there so long ago. */
  replicaLagMs: readonly [min: number, max: number];
}

export const noFaults: BusFaults = {
  latencyMs: [0, 0],
  publishLost: 0,
  publishUnanswered: 0,
  publishLate: 0,
  ackLost: 0,
  deliveredTwice: 0,
  deliveryLost: 0,
  deliveryDelayed: 0,
  deliveryDelayMs: 0,
  plainLost: 0,
  plainTwice: 0,
  plainDelayed: 0,
  plainDelayMs: 0,
  markerDelayMs: [0, 0],
  scheduleDelayMs: [0, 0],
  replicaLagMs: [0, 0],
};

/** Everything at once, as often as a bad day in production. */
export const someFaults: BusFaults = {
  latencyMs: [0, 5],
  publishLost: 0.01,
  publishUnanswered: 0.02,
  publishLate: 0.005,
  ackLost: 0.02,
  deliveredTwice: 0.02,
  deliveryLost: 0.01,
  deliveryDelayed: 0.05,
  deliveryDelayMs: 500,
  plainLost: 0.05,
  plainTwice: 0.01,
  plainDelayed: 0.02,
  plainDelayMs: 500,
  markerDelayMs: [0, 300],
  scheduleDelayMs: [0, 250],
  replicaLagMs: [0, 40],
};

type Chance = {
  [K in keyof BusFaults]: BusFaults[K] extends number ? K : never;
}[keyof BusFaults];
type Span = Exclude<keyof BusFaults, Chance>;

export class Fate {
  faults: BusFaults;
  readonly hits: Partial<Record<Chance, number>> = {};
  readonly #random: Random;

  constructor(random: Random, faults: BusFaults) {
    this.#random = random;
    this.faults = faults;
  }

  strikes(fault: Chance): boolean {
    const chance = this.faults[fault];
    if (chance === 0 || this.#random.next() >= chance) return false;
    this.hits[fault] = (this.hits[fault] ?? 0) + 1;
    return true;
  }

  within(span: Span): number {
    const [min, max] = this.faults[span];
    return max === min ? min : min + this.#random.next() * (max - min);
  }

  upTo(ms: number): number {
    return this.#random.next() * ms;
  }

  pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.#random.next() * list.length)];
  }
}
