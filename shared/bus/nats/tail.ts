/**
 * A live view of a stream: an ephemeral consumer that is created anew after the last sequence seen whenever a
 * message may have been missed: after a reconnect, a gap in the consumer's numbering, silence, or a server
 * restart.
 */

import { nuid } from "@nats-io/nats-core";
import { Fault } from "../../errors/index.ts";
import type { Stoppable, StoredMessage } from "../bus.ts";
import type { Api } from "./api.ts";
import type { ConsumerAnswer } from "./consumers.ts";
import type { Link } from "./link.ts";
import { codes, faultFrom, noStream } from "./nats-errors.ts";
import { Pull } from "./pull.ts";
import { nanos, originOf, Stored } from "./wire.ts";

export interface TailOptions {
  existing: boolean;
  onMessage: (message: StoredMessage) => void;
  onCaughtUp?: () => void;
}

const pullAhead = 500;
const inactiveMs = 60_000;
const retryMs = 250;

type Begin = { kind: "existing" } | { kind: "new" } | { kind: "after"; seq: number };

export class Tail implements Stoppable {
  readonly #link: Link;
  readonly #api: Api;
  readonly #inboxPrefix: string | undefined;
  readonly #stream: string;
  readonly #filter: string;
  readonly #options: TailOptions;
  /** Highest sequence delivered, or known to lie before the view. */
  #seenSeq = 0;
  #caughtUp = false;
  #stopped = false;
  #pull: Pull | undefined;
  #retry: { timer: NodeJS.Timeout; wake: () => void } | undefined;

  constructor(
    link: Link,
    api: Api,
    inboxPrefix: string | undefined,
    stream: string,
    filter: string,
    options: TailOptions,
  ) {
    this.#link = link;
    this.#api = api;
    this.#inboxPrefix = inboxPrefix;
    this.#stream = stream;
    this.#filter = filter;
    this.#options = options;
  }

  async start(): Promise<void> {
    const consumer = await this.#create(this.#options.existing ? { kind: "existing" } : { kind: "new" });
    this.#seenSeq = this.#options.existing ? 0 : consumer.delivered.stream_seq;
    this.#follow(consumer);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#retry) {
      clearTimeout(this.#retry.timer);
      this.#retry.wake();
    }
    await this.#pull?.stop();
  }

  #follow(consumer: ConsumerAnswer): void {
    let expected = 1;
    let broken = false;
    const breakOff = () => {
      broken = true;
      pull.drop();
    };
    const pull = new Pull(this.#link, {
      stream: this.#stream,
      consumer: consumer.name,
      inboxPrefix: this.#inboxPrefix,
      maxMessages: pullAhead,
      room: () => pullAhead,
      onMessage: (message) => {
        if (broken) return;
        const origin = originOf(message.reply ?? "");
        if (origin.consumerSeq !== expected++) return breakOff();
        // A restarted view repeats messages it has shown; sequences only grow, so a lower one is skipped.
        if (origin.seq > this.#seenSeq) {
          this.#seenSeq = origin.seq;
          this.#deliver(new Stored(message, origin));
        }
        if (origin.pending === 0) this.#reportCaughtUp();
      },
      // A message counted as pending may have expired meanwhile: an idle server has no more messages for this
      // view.
      onIdle: () => this.#reportCaughtUp(),
      onReconnect: breakOff,
      lookUp: async () => {
        // Silence or a refusal: creating the consumer anew is as cheap as asking whether that is needed.
        broken = true;
        return "gone";
      },
    });
    this.#pull = pull;
    if (consumer.num_pending === 0) queueMicrotask(() => this.#reportCaughtUp());
    void pull.ended.then(() => this.#restart(consumer.name));
  }

  async #restart(old: string): Promise<void> {
    if (this.#link.closed) return;
    // The server removes an idle ephemeral consumer after a while; this removes it now.
    this.#api.ask(`CONSUMER.DELETE.${this.#stream}.${old}`).catch(() => undefined);
    while (!this.#stopped && !this.#link.closed) {
      try {
        const consumer = await this.#create(await this.#resumption());
        if (this.#stopped) {
          this.#api.ask(`CONSUMER.DELETE.${this.#stream}.${consumer.name}`).catch(() => undefined);
          return;
        }
        return this.#follow(consumer);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        await this.#pause(); // No answer, or the stream does not exist (yet): the view waits for it.
      }
    }
  }

  async #resumption(): Promise<Begin> {
    if (this.#options.existing && !this.#caughtUp) return { kind: "existing" };
    const info = await this.#api.get<{ state: { last_seq: number } }>(`STREAM.INFO.${this.#stream}`);
    if (info.state.last_seq < this.#seenSeq) {
      this.#seenSeq = 0; // Another stream under the same name: every message of it is new.
      return { kind: "after", seq: 0 };
    }
    return { kind: "after", seq: this.#seenSeq };
  }

  async #create(begin: Begin): Promise<ConsumerAnswer> {
    const name = `t_${nuid.next()}`;
    const subject = `CONSUMER.CREATE.${this.#stream}.${name}.${this.#filter}`;
    const answer = await this.#api.ask<ConsumerAnswer>(subject, {
      stream_name: this.#stream,
      config: {
        name,
        filter_subject: this.#filter,
        ack_policy: "none",
        replay_policy: "instant",
        mem_storage: true,
        num_replicas: 1,
        inactive_threshold: nanos(inactiveMs),
        ...policyOf(begin),
      },
    });
    if (answer.kind === "ok") return answer.value;
    const doing = `follow stream ${this.#stream}`;
    if (answer.kind === "nobody" || answer.error.err_code === codes.streamNotFound) throw noStream(doing);
    throw faultFrom(answer.error, doing);
  }

  #deliver(message: StoredMessage): void {
    try {
      this.#options.onMessage(message);
    } catch (thrown) {
      this.#link.fault(`view of ${this.#filter}`, thrown);
    }
  }

  #reportCaughtUp(): void {
    if (this.#caughtUp || this.#stopped) return;
    this.#caughtUp = true;
    this.#options.onCaughtUp?.();
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#retry = { timer: setTimeout(resolve, retryMs), wake: resolve };
    });
  }
}

function policyOf(begin: Begin): Record<string, unknown> {
  switch (begin.kind) {
    case "existing":
      return { deliver_policy: "last_per_subject" };
    case "new":
      return { deliver_policy: "new" };
    case "after":
      return { deliver_policy: "by_start_sequence", opt_start_seq: begin.seq + 1 };
  }
}
