/** Plain publish, subscribe and request: at most once, nothing is stored. */

import type { CoreMessage, Headers, Reply } from "../../bus/index.ts";
import { hasWildcard, matches } from "../../bus/index.ts";
import type { Clock } from "../../runtime/index.ts";
import type { ClientState } from "./client-state.ts";
import type { Fate } from "./faults.ts";

export interface Subscriber {
  client: ClientState;
  filter: string;
  queue: string | undefined;
  onMessage: (message: CoreMessage) => void;
}

/** Most subscriptions have no wildcard: they are found by their subject. */
class Subscribers {
  readonly #exact = new Map<string, Set<Subscriber>>();
  readonly #wild = new Set<Subscriber>();

  add(subscriber: Subscriber): void {
    this.#room(subscriber.filter).add(subscriber);
  }

  has(subscriber: Subscriber): boolean {
    return this.#room(subscriber.filter).has(subscriber);
  }

  delete(subscriber: Subscriber): void {
    const room = this.#room(subscriber.filter);
    room.delete(subscriber);
    if (room.size === 0) this.#exact.delete(subscriber.filter);
  }

  *of(subject: string): Generator<Subscriber, void, undefined> {
    yield* this.#exact.get(subject) ?? [];
    for (const subscriber of this.#wild) if (matches(subscriber.filter, subject)) yield subscriber;
  }

  #room(filter: string): Set<Subscriber> {
    if (hasWildcard(filter)) return this.#wild;
    const room = this.#exact.get(filter) ?? new Set();
    this.#exact.set(filter, room);
    return room;
  }
}

/** A reply takes the same way, with the same faults, as any message of its sender. */
const replyOf =
  (by: ClientState, reply: NonNullable<CoreMessage["reply"]>): CoreMessage["reply"] =>
  (body, headers) =>
    by.sendSoon(() => reply(body, headers));

export class PlainMessages {
  readonly subscribers = new Subscribers();
  readonly #clock: Clock;
  readonly #fate: Fate;

  constructor(clock: Clock, fate: Fate) {
    this.#clock = clock;
    this.#fate = fate;
  }

  send(
    from: ClientState,
    subject: string,
    body: Uint8Array,
    headers: Headers,
    reply?: CoreMessage["reply"],
  ): void {
    if (!from.up || this.#fate.strikes("plainLost")) return;
    from.sendSoon(() => {
      for (const subscriber of this.#receivers(subject)) {
        const arrive = () => {
          if (!subscriber.client.up || !this.subscribers.has(subscriber)) return;
          subscriber.client.guarded(`subscription to ${subscriber.filter}`, () =>
            subscriber.onMessage({
              subject,
              headers,
              body,
              reply: reply && replyOf(subscriber.client, reply),
            }),
          );
        };
        this.#hop(arrive);
        if (this.#fate.strikes("plainTwice")) this.#hop(arrive);
      }
    });
  }

  request(
    from: ClientState,
    subject: string,
    body: Uint8Array,
    options: { timeoutMs: number; headers?: Headers },
  ): Promise<Reply> {
    return new Promise((resolve) => {
      let answered = false;
      const settle = (reply: Reply) => {
        if (answered || from.killed) return;
        answered = true;
        timer.cancel();
        resolve(reply);
      };
      const timer = this.#clock.after(options.timeoutMs, () => settle({ kind: "timeout" }));
      if (from.up && this.#receivers(subject).length === 0) {
        this.#hop(() => settle({ kind: "nobody" }));
        return;
      }
      this.send(from, subject, body, options.headers ?? {}, (answer, headers = {}) =>
        from.receive(() => {
          if (from.up) settle({ kind: "reply", headers, body: answer });
        }),
      );
    });
  }

  /** Every subscriber without a queue, and one of each queue. */
  #receivers(subject: string): Subscriber[] {
    const alone: Subscriber[] = [];
    const queues = new Map<string, Subscriber[]>();
    for (const subscriber of this.subscribers.of(subject)) {
      if (!subscriber.client.up) continue;
      if (subscriber.queue === undefined) alone.push(subscriber);
      else queues.set(subscriber.queue, [...(queues.get(subscriber.queue) ?? []), subscriber]);
    }
    for (const members of queues.values()) {
      const chosen = this.#fate.pick(members);
      if (chosen) alone.push(chosen);
    }
    return alone;
  }

  #hop(arrive: () => void): void {
    const ms = this.#fate.strikes("plainDelayed")
      ? this.#fate.upTo(this.#fate.faults.plainDelayMs)
      : this.#fate.within("latencyMs");
    if (ms > 0) this.#clock.after(ms, arrive);
    else queueMicrotask(arrive);
  }
}
