/**
 * NATS with nothing around it: one inbox for all replies, no timers, no retries. The client library's publish
 * makes two promises, a timer and a race per call; the floor must not be slower than necessary.
 */
import { createInbox, type Msg, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { WireHeaders } from "../../shared/bus/nats/headers.ts";

type FloorHeaders = Record<string, string>;

interface Answer {
  seq?: number;
  error?: { description: string; err_code: number };
}

export class FloorLink {
  readonly nc: NatsConnection;
  readonly #prefix = `${createInbox()}.`;
  readonly #calls = new Map<string, (message: Msg) => void>();
  #counter = 0;

  constructor(nc: NatsConnection) {
    this.nc = nc;
    nc.subscribe(`${this.#prefix}*`, {
      callback: (_error, message) => {
        const token = message.subject.slice(this.#prefix.length);
        this.#calls.get(token)?.(message);
        this.#calls.delete(token);
      },
    });
  }

  static async connect(url: string, name: string): Promise<FloorLink> {
    return new FloorLink(await connect({ servers: url, name }));
  }

  request(subject: string, body: Uint8Array | string, headers?: FloorHeaders): Promise<Msg> {
    return new Promise((resolve) => {
      const token = (this.#counter++).toString(36);
      this.#calls.set(token, resolve);
      const reply = this.#prefix + token;
      if (headers === undefined) this.nc.publish(subject, body, { reply });
      else this.nc.publish(subject, body, { reply, headers: new WireHeaders().addAll(headers) });
    });
  }

  /** Resolves with the sequence when the message is stored. */
  async store(subject: string, body: Uint8Array | string, headers?: FloorHeaders): Promise<number> {
    const { seq } = await this.#answer(subject, body, headers);
    if (seq === undefined) throw new Error(`${subject}: no stream stored the message`);
    return seq;
  }

  async api(verb: string, body?: unknown): Promise<void> {
    await this.#answer(`$JS.API.${verb}`, body === undefined ? "" : JSON.stringify(body));
  }

  async #answer(subject: string, body: Uint8Array | string, headers?: FloorHeaders): Promise<Answer> {
    const answer = (await this.request(subject, body, headers)).json<Answer>();
    if (answer.error) throw new Error(`${subject}: ${answer.error.description}`);
    return answer;
  }

  /** Keeps `width` messages on order. */
  consume(stream: string, consumer: string, width: number, onMessage: (message: Msg) => void): void {
    const inbox = createInbox();
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    let ordered = 0;
    const order = (): void => {
      const batch = width - ordered;
      ordered += batch;
      this.nc.publish(subject, JSON.stringify({ batch, expires: 3_600_000_000_000 }), { reply: inbox });
    };
    this.nc.subscribe(inbox, {
      callback: (_error, message) => {
        if (message.headers?.hasError) throw new Error(`${consumer}: ${message.headers.description}`);
        if (--ordered <= width / 2) order();
        onMessage(message);
      },
    });
    order();
  }
}
