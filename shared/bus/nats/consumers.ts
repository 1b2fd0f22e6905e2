/** Durable pull consumers and their deliveries. */
import { Fault } from "../../errors/index.ts";
import type { ConsumeOptions, ConsumerInfo, ConsumerSpec, Consumption, Delivery } from "../bus.ts";
import type { Api } from "./api.ts";
import { giveBack, type Ledger, NatsDelivery, nak } from "./delivery.ts";
import type { Link } from "./link.ts";
import type { Mux } from "./mux.ts";
import { codes } from "./nats-errors.ts";
import { type Existence, Pull } from "./pull.ts";
import { nanos, originOf } from "./wire.ts";

export interface ConsumerAnswer {
  name: string;
  created: string;
  config: { filter_subject?: string; ack_wait?: number };
  delivered: { consumer_seq: number; stream_seq: number };
  ack_floor: { stream_seq: number };
  num_ack_pending: number;
  num_redelivered: number;
  num_pending: number;
}

const missing = [codes.consumerNotFound, codes.streamNotFound];

const gone = (stream: string, consumer: string): Fault =>
  new Fault("transient", {
    code: "consumer_gone",
    message: `consumer ${consumer} of stream ${stream} does not exist`,
  });

export class Consumers {
  readonly #link: Link;
  readonly #mux: Mux;
  readonly #api: Api;
  readonly #inboxPrefix: string | undefined;

  constructor(link: Link, mux: Mux, api: Api, inboxPrefix: string | undefined) {
    this.#link = link;
    this.#mux = mux;
    this.#api = api;
    this.#inboxPrefix = inboxPrefix;
  }

  async ensure(spec: ConsumerSpec): Promise<void> {
    await this.#api.get(`CONSUMER.CREATE.${spec.stream}.${spec.name}.${spec.filter}`, {
      stream_name: spec.stream,
      config: {
        durable_name: spec.name,
        name: spec.name,
        filter_subject: spec.filter,
        ack_policy: "explicit",
        ack_wait: nanos(spec.ackWaitMs),
        deliver_policy: "all",
        replay_policy: "instant",
        max_deliver: -1,
        max_ack_pending: spec.maxAckPending ?? 1_000,
        ...(spec.headersOnly ? { headers_only: true } : {}),
        ...(spec.volatile ? { mem_storage: true } : {}),
        ...(spec.inactiveMs === undefined ? {} : { inactive_threshold: nanos(spec.inactiveMs) }),
      },
    });
  }

  async delete(stream: string, name: string): Promise<boolean> {
    return (await this.#api.find(`CONSUMER.DELETE.${stream}.${name}`, undefined, missing)) !== undefined;
  }

  async list(stream: string): Promise<ConsumerInfo[]> {
    const all: ConsumerInfo[] = [];
    for (;;) {
      const page = await this.#api.find<{ consumers: ConsumerAnswer[] | null; total: number }>(
        `CONSUMER.LIST.${stream}`,
        { offset: all.length },
        missing,
      );
      for (const found of page?.consumers ?? []) {
        all.push({
          stream,
          name: found.name,
          filter: found.config.filter_subject ?? ">",
          pending: found.num_pending,
          ackPending: found.num_ack_pending,
          redelivered: found.num_redelivered,
          settledSeq: found.ack_floor.stream_seq,
          handedOutSeq: found.delivered.stream_seq,
        });
      }
      if (!page?.consumers?.length || all.length >= page.total) return all;
    }
  }

  find(stream: string, name: string): Promise<ConsumerAnswer | undefined> {
    return this.#api.find<ConsumerAnswer>(`CONSUMER.INFO.${stream}.${name}`, undefined, missing);
  }

  async consume(stream: string, name: string, options: ConsumeOptions): Promise<Consumption> {
    const found = await this.find(stream, name);
    if (!found) throw gone(stream, name);
    const unsettled = new Unsettled((found.config.ack_wait ?? nanos(30_000)) / 1e6, () => pull.refill());
    const pull = new Pull(this.#link, {
      stream,
      consumer: name,
      inboxPrefix: this.#inboxPrefix,
      maxMessages: options.maxMessages,
      room: () => options.maxMessages - unsettled.count(),
      onMessage: (message) => {
        const origin = originOf(message.reply ?? "");
        const delivery = new NatsDelivery(this.#link, this.#mux, message, origin, unsettled);
        unsettled.add(delivery);
        options.onMessage(delivery);
      },
      ...(options.onIdle && { onIdle: options.onIdle }),
      giveBack: (message) => giveBack(this.#link, message),
      lookUp: () => this.#lookUp(stream, name, found.created),
    });
    return { ended: pull.ended, stop: () => pull.stop() };
  }

  async next(
    stream: string,
    name: string,
    options: { expiresMs: number; signal?: AbortSignal },
  ): Promise<Delivery | undefined> {
    if (options.signal?.aborted) return undefined;
    let delivery: Delivery | undefined;
    const endsAt = performance.now() + options.expiresMs;
    const pull = new Pull(this.#link, {
      stream,
      consumer: name,
      inboxPrefix: this.#inboxPrefix,
      maxMessages: 1,
      // While a client listens to everything (`nats sub '>'`), a request that outlives its subscription
      // swallows a message.
      expiresMs: options.expiresMs,
      room: () => (delivery === undefined && performance.now() < endsAt ? 1 : 0),
      onMessage: (message) => {
        if (delivery !== undefined) return giveBack(this.#link, message);
        delivery = new NatsDelivery(this.#link, this.#mux, message, originOf(message.reply ?? ""));
        pull.drop();
      },
      giveBack: (message) => giveBack(this.#link, message),
      lookUp: () => this.#lookUp(stream, name, undefined),
    });
    const giveUp = () => void pull.stop();
    const timer = setTimeout(giveUp, options.expiresMs);
    options.signal?.addEventListener("abort", giveUp, { once: true });
    const how = await pull.ended;
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", giveUp);
    if (how === "gone" && delivery === undefined) throw gone(stream, name);
    return delivery;
  }

  /**
   * Refuses the deliveries on behalf of the client that has them. The server accepts a refusal from any
   * client that names the stream sequence and an unsettled delivery, and ignores the refusal of a settled
   * one.
   */
  async handBack(stream: string, name: string, seqs: readonly number[]): Promise<void> {
    const found = await this.find(stream, name);
    if (!found) return;
    for (const seq of seqs) {
      const about = `1.${seq}.${found.delivered.consumer_seq}.${Date.now()}000000.0`;
      this.#link.publish(`$JS.ACK.${stream}.${name}.${about}`, nak);
    }
  }

  /**
   * `created` distinguishes a consumer from its successor of the same name, which another client created to take
   * over.
   */
  async #lookUp(stream: string, name: string, created: string | undefined): Promise<Existence> {
    try {
      const found = await this.find(stream, name);
      if (!found || (created !== undefined && found.created !== created)) return "gone";
      return "exists";
    } catch {
      return "unsure"; // No answer: the consumer's existence stays unknown, and the pull asks again.
    }
  }
}

/** Deliveries that are not settled and whose time for redelivery has not come. */
class Unsettled implements Ledger {
  readonly #ackWaitMs: number;
  readonly #onRoom: () => void;
  readonly #until = new Map<number, { delivery: NatsDelivery; at: number }>();

  constructor(ackWaitMs: number, onRoom: () => void) {
    this.#ackWaitMs = ackWaitMs;
    this.#onRoom = onRoom;
  }

  add(delivery: NatsDelivery): void {
    this.#until.delete(delivery.seq); // The server redelivered the message: the older delivery is void.
    this.#until.set(delivery.seq, { delivery, at: performance.now() + this.#ackWaitMs });
  }

  extended(delivery: NatsDelivery): void {
    if (this.#until.get(delivery.seq)?.delivery === delivery) this.add(delivery);
  }

  release(delivery: NatsDelivery): void {
    if (this.#until.get(delivery.seq)?.delivery !== delivery) return;
    this.#until.delete(delivery.seq);
    this.#onRoom();
  }

  /** Entries are in order of expiry, so only the front is checked. */
  count(): number {
    const now = performance.now();
    for (const [seq, { at }] of this.#until) {
      if (at > now) break;
      this.#until.delete(seq);
    }
    return this.#until.size;
  }
}
