/** What the server took in while something ran: messages from clients, and messages stored in streams. */
import { z } from "zod";

const Varz = z.object({ in_msgs: z.number() });
const Jsz = z.object({
  account_details: z
    .array(
      z.object({
        stream_detail: z
          .array(
            z.object({
              name: z.string(),
              state: z.object({ first_seq: z.number(), last_seq: z.number() }),
            }),
          )
          .default([]),
      }),
    )
    .default([]),
});

interface Counted {
  messages: number;
  /** Stream → the sequences it has given out so far. */
  stored: ReadonlyMap<string, { first: number; last: number }>;
}

export class ServerCount {
  readonly #monitor: string;
  #messages = 0;
  #stored = 0;

  /** `monitor`: address of the server's HTTP monitoring. */
  constructor(monitor: string) {
    this.#monitor = monitor;
  }

  async during<T>(run: () => Promise<T>): Promise<T> {
    const before = await this.#read();
    const result = await run();
    const after = await this.#read();
    this.#messages += after.messages - before.messages;
    for (const [name, { first, last }] of after.stored)
      this.#stored += last - (before.stored.get(name)?.last ?? first - 1);
    return result;
  }

  perUnit(units: number): { messages: number; storedWrites: number } {
    return { messages: this.#messages / units, storedWrites: this.#stored / units };
  }

  async #read(): Promise<Counted> {
    const { in_msgs: messages } = Varz.parse(await this.#get("varz"));
    const { account_details: accounts } = Jsz.parse(await this.#get("jsz?streams=true&limit=100000"));
    const streams = accounts.flatMap(({ stream_detail }) => stream_detail);
    const stored = new Map(
      streams.map(({ name, state }) => [name, { first: state.first_seq, last: state.last_seq }] as const),
    );
    return { messages, stored };
  }

  async #get(path: string): Promise<unknown> {
    return (await fetch(`${this.#monitor}/${path}`)).json();
  }
}
