/** A message delivered by a consumer, to be settled once. */
import type { Msg } from "@nats-io/nats-core";
import type { Delivery } from "../bus.ts";
import type { Link } from "./link.ts";
import type { Failed, Mux } from "./mux.ts";
import { unavailable } from "./nats-errors.ts";
import { type Origin, Stored } from "./wire.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const ack = encode("+ACK");
export const nak = encode("-NAK");
const progress = encode("+WPI");
const ackTimeoutMs = 5_000;

export const giveBack = (link: Link, message: Msg): void => {
  if (message.reply) link.sendSoon(message.reply, nak);
};

export interface Ledger {
  /** The delivery no longer counts against the limit. */
  release(delivery: NatsDelivery): void;
  extended(delivery: NatsDelivery): void;
}

export class NatsDelivery extends Stored implements Delivery {
  readonly deliveries: number;
  readonly order: number;
  readonly #link: Link;
  readonly #mux: Mux;
  readonly #reply: string;
  readonly #ledger: Ledger | undefined;
  #settled = false;

  constructor(link: Link, mux: Mux, message: Msg, origin: Origin, ledger?: Ledger) {
    super(message, origin);
    this.deliveries = origin.deliveries;
    this.order = origin.consumerSeq;
    this.#link = link;
    this.#mux = mux;
    this.#reply = message.reply ?? "";
    this.#ledger = ledger;
  }

  ack(): void {
    if (this.#settle()) this.#link.sendSoon(this.#reply, ack);
  }

  async ackSync(): Promise<boolean> {
    if (!this.#settle()) return false;
    for (;;) {
      if (!(await this.#link.ready(ackTimeoutMs))) throw unavailable(`acknowledge ${this.subject}`);
      const done = await this.#mux.request<true | Failed>(this.#reply, ack, undefined, ackTimeoutMs, {
        ofReply: () => true,
        ofFailure: (why) => why,
      });
      if (done === true) return true;
      if (done !== "disconnected") throw unavailable(`acknowledge ${this.subject}`);
    }
  }

  nak(delayMs?: number): void {
    if (!this.#settle()) return;
    const body = delayMs ? encode(`-NAK ${JSON.stringify({ delay: Math.round(delayMs * 1e6) })}`) : nak;
    this.#link.sendSoon(this.#reply, body);
  }

  working(): void {
    if (this.#settled) return;
    this.#ledger?.extended(this);
    if (this.#link.connected) this.#link.sendSoon(this.#reply, progress);
  }

  putAside(): void {
    this.#ledger?.release(this);
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#ledger?.release(this);
    return true;
  }
}
