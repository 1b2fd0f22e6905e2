/**
 * A durable pull consumer: delivers in order, remembers unsettled deliveries, redelivers those not settled in
 * time.
 */
import type { ConsumerInfo, ConsumerSpec, Delivery, StoredMessage } from "../../bus/index.ts";
import type { Timer } from "../../runtime/index.ts";
import type { Fate } from "./faults.ts";
import type { MemoryStream, ServerTime } from "./memory-stream.ts";

/** A client's consumption, as the consumer sees it. */
export interface MessageTaker {
  /** How many more messages it takes now; 0 while its client is disconnected. */
  room(): number;
  receive(delivery: Delivery): void;
  /** The server has sent so many deliveries, and none for a second. */
  idle(deliveries: number): void;
  /** The message will be redelivered: it no longer belongs to this taker. */
  release(seq: number): void;
  gone(): void;
}

interface Out {
  deliveries: number;
  timer: Timer | undefined;
  holder: MessageTaker | undefined;
}

const heartbeatMs = 1_000;

export class MemoryConsumer {
  readonly spec: ConsumerSpec;
  readonly #stream: MemoryStream;
  readonly #time: ServerTime;
  readonly #fate: Fate;
  readonly #takers: MessageTaker[] = [];
  readonly #out = new Map<number, Out>();
  readonly #again = new Set<number>();
  readonly #onNew = () => this.pump();
  #handedOut = 0;
  #cursor = 1;
  #turn = 0;
  #pumping: Timer | "soon" | undefined;
  #idle: Timer | undefined;
  #heartbeat: Timer | undefined;
  #ended = false;

  constructor(spec: ConsumerSpec, stream: MemoryStream, time: ServerTime, fate: Fate) {
    this.spec = spec;
    this.#stream = stream;
    this.#time = time;
    this.#fate = fate;
    stream.listeners.add(this.#onNew);
    this.#watchIdle();
  }

  join(taker: MessageTaker): void {
    // The consumer was deleted while the answer that it exists was on its way.
    if (this.#ended) return taker.gone();
    this.#takers.push(taker);
    this.#idle?.cancel();
    this.#idle = undefined;
    this.pump();
  }

  leave(taker: MessageTaker): void {
    const index = this.#takers.indexOf(taker);
    if (index >= 0) this.#takers.splice(index, 1);
    this.#watchIdle();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stream.listeners.delete(this.#onNew);
    this.#stream.consumers.delete(this.spec.name);
    for (const { timer } of this.#out.values()) timer?.cancel();
    this.#idle?.cancel();
    this.#heartbeat?.cancel();
    for (const taker of this.#takers.splice(0)) taker.gone();
  }

  /** Delivers what can be delivered, soon. At most one pump is under way, so the order is kept. */
  pump(): void {
    if (this.#pumping || this.#ended) return;
    const delay = this.#fate.strikes("deliveryDelayed")
      ? this.#fate.upTo(this.#fate.faults.deliveryDelayMs)
      : this.#fate.within("latencyMs");
    const run = () => {
      this.#pumping = undefined;
      this.#handOut();
    };
    if (delay > 0) this.#pumping = this.#time.after(delay, run);
    else {
      this.#pumping = "soon";
      queueMicrotask(run);
    }
  }

  /** The message was removed from the stream. */
  forget(seq: number): void {
    this.#out.get(seq)?.timer?.cancel();
    this.#out.delete(seq);
    this.#again.delete(seq);
  }

  /** Same as a refusal by the client that has the message. */
  handBack(seq: number): void {
    if (this.#out.has(seq) && !this.#again.has(seq)) this.#giveAgain(seq);
  }

  info(): ConsumerInfo {
    return {
      stream: this.spec.stream,
      name: this.spec.name,
      filter: this.spec.filter,
      pending: this.#stream.read(this.spec.filter, this.#cursor).length,
      ackPending: this.#out.size,
      settledSeq: Math.min(this.#cursor, ...this.#out.keys()) - 1,
      handedOutSeq: this.#cursor - 1,
      redelivered: [...this.#out.values()].filter((out) => out.deliveries > 1).length,
    };
  }

  #handOut(): void {
    while (!this.#ended) {
      const taker = this.#nextTaker();
      const message = taker && this.#nextMessage();
      if (!taker || !message) return;
      const out = this.#out.get(message.seq) ?? { deliveries: 0, timer: undefined, holder: undefined };
      out.deliveries++;
      out.holder = taker;
      this.#out.set(message.seq, out);
      this.#arm(message.seq, out, this.spec.ackWaitMs);
      const order = ++this.#handedOut;
      this.#armHeartbeat();
      if (this.#fate.strikes("deliveryLost")) continue;
      taker.receive(this.#delivery(message, out.deliveries, order));
      if (this.#fate.strikes("deliveredTwice") && this.#out.has(message.seq)) this.#giveAgain(message.seq);
    }
  }

  /** Once after the last delivery is enough: heartbeats are not lost here, and nothing changes between two of them. */
  #armHeartbeat(): void {
    this.#heartbeat?.cancel();
    this.#heartbeat = this.#time.after(
      heartbeatMs,
      () => {
        for (const taker of [...this.#takers]) taker.idle(this.#handedOut);
      },
      "upkeep",
    );
  }

  /** The next taker with room, in turn. */
  #nextTaker(): MessageTaker | undefined {
    for (let i = 0; i < this.#takers.length; i++) {
      const taker = this.#takers[(this.#turn + i) % this.#takers.length];
      if (taker && taker.room() > 0) {
        this.#turn = (this.#turn + i + 1) % this.#takers.length;
        return taker;
      }
    }
    return undefined;
  }

  #nextMessage(): StoredMessage | undefined {
    for (const seq of [...this.#again].sort((a, b) => a - b)) {
      this.#again.delete(seq);
      const message = this.#stream.get(seq);
      if (message) return message;
    }
    if (this.#out.size >= (this.spec.maxAckPending ?? 1_000)) return undefined;
    const message = this.#stream.nextFrom(this.#cursor, this.spec.filter);
    if (message) this.#cursor = message.seq + 1;
    return message;
  }

  #delivery(message: StoredMessage, deliveries: number, order: number): Delivery {
    const { seq } = message;
    const settle = (act: () => void) => {
      if (this.#ended || !this.#out.has(seq) || this.#fate.strikes("ackLost")) return;
      act();
      this.pump();
    };
    return {
      subject: message.subject,
      seq,
      at: message.at,
      headers: message.headers,
      body: this.spec.headersOnly ? new Uint8Array(0) : message.body,
      deliveries,
      order,
      ack: () => settle(() => this.#done(seq)),
      ackSync: async () => {
        settle(() => this.#done(seq));
        return true;
      },
      nak: (delayMs = 0) =>
        settle(() => {
          const out = this.#out.get(seq);
          if (delayMs <= 0 || !out) this.#giveAgain(seq);
          else this.#arm(seq, out, delayMs);
        }),
      working: () =>
        settle(() => {
          const out = this.#out.get(seq);
          if (out) this.#arm(seq, out, this.spec.ackWaitMs);
        }),
      putAside: () => undefined, // The taker itself frees the room.
    };
  }

  #done(seq: number): void {
    this.forget(seq);
    if (this.#stream.spec.retention === "workqueue") this.#stream.remove(seq);
  }

  #arm(seq: number, out: Out, ms: number): void {
    out.timer?.cancel();
    out.timer = this.#time.after(ms, () => this.#giveAgain(seq), "upkeep");
  }

  #giveAgain(seq: number): void {
    const out = this.#out.get(seq);
    if (this.#ended || !out) return;
    out.holder?.release(seq);
    this.#again.add(seq);
    this.pump();
  }

  #watchIdle(): void {
    const { inactiveMs } = this.spec;
    if (inactiveMs === undefined || this.#takers.length > 0 || this.#ended) return;
    this.#idle?.cancel();
    this.#idle = this.#time.after(inactiveMs, () => this.end(), "upkeep");
  }
}
