/** Faults between a client and the broker, as probabilities, and how often each struck (I18). */
import type { Random } from "../../runtime/index.ts";

/** How often the in-memory NATS loses, delays, repeats and reorders messages, and by how much. */
export interface BusFaults {
  /** Latency of each direction, between these two. */
  latencyMs: readonly [min: number, max: number];
  /** The message is not stored, and the publisher gets no answer. */
  publishLost: number;
  /** The message is stored, and the publisher gets no answer (F29). */
  publishUnanswered: number;
  /** The publisher gets no answer, and the message is stored much later. */
  publishLate: number;
  /** The acknowledgement does not arrive. */
  ackLost: number;
  /** The message is delivered twice. */
  deliveredTwice: number;
  /** The delivery does not arrive: redelivered after the acknowledgement wait. */
  deliveryLost: number;
  /** A delivery is delayed, at most this long. */
  deliveryDelayed: number;
  deliveryDelayMs: number;
  /** A plain message does not arrive. */
  plainLost: number;
  /** A plain message arrives twice, or late, after messages that were sent later. */
  plainTwice: number;
  plainDelayed: number;
  plainDelayMs: number;
  /** Delay before an expiry is noticed. */
  markerDelayMs: readonly [min: number, max: number];
  /** Delay before a schedule fires. */
  scheduleDelayMs: readonly [min: number, max: number];
  /** With replicated streams: a reader that does not ask the leader sees the state of this long ago. */
  replicaLagMs: readonly [min: number, max: number];
}

/** An in-memory NATS without latency and faults. */
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

/** Every fault, as often as on a bad day in production. */
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
