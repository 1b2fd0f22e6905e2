/** A live view of one client: pauses while the client is disconnected and continues where it was. */

import type { Stoppable, StoredMessage } from "../../bus/index.ts";
import { matches } from "../../bus/index.ts";
import type { Clock } from "../../runtime/index.ts";
import type { ClientState } from "./client-state.ts";
import type { Fate } from "./faults.ts";
import type { MemoryStream } from "./memory-stream.ts";

export interface TailOptions {
  existing: boolean;
  onMessage: (message: StoredMessage) => void;
  onCaughtUp?: () => void;
}

export class MemoryTail implements Stoppable {
  readonly #client: ClientState;
  readonly #clock: Clock;
  readonly #fate: Fate;
  readonly #filter: string;
  readonly #options: TailOptions;
  readonly #onNew = () => this.#pump();
  readonly #unlisten: () => void;
  #stream: MemoryStream | undefined;
  /** Highest sequence sent to the client, and highest that has arrived there. */
  #sent: number;
  #arrived: number;
  #sentExisting = false;
  #caughtUp = false;
  #pumping = false;
  #stopped = false;

  constructor(
    client: ClientState,
    clock: Clock,
    fate: Fate,
    stream: MemoryStream,
    filter: string,
    options: TailOptions,
  ) {
    this.#client = client;
    this.#clock = clock;
    this.#fate = fate;
    this.#filter = filter;
    this.#options = options;
    this.#sent = options.existing ? 0 : stream.lastSeq;
    this.#arrived = this.#sent;
    this.#unlisten = client.onState((state) => {
      if (state.kind !== "reconnected") return;
      // Messages that were lost on the way are sent again.
      this.#sent = this.#arrived;
      this.#sentExisting = this.#caughtUp;
      this.#pump();
    });
    this.follow(stream);
  }

  /** Also called when a stream of that name was created again: all its messages are new. */
  follow(stream: MemoryStream): void {
    if (this.#stream && this.#stream !== stream) {
      this.#sent = 0;
      this.#arrived = 0;
    }
    this.#stream = stream;
    stream.listeners.add(this.#onNew);
    this.#pump();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unlisten();
    this.#stream?.listeners.delete(this.#onNew);
  }

  #pump(): void {
    if (this.#pumping || this.#stopped) return;
    this.#pumping = true;
    const ms = this.#fate.strikes("deliveryDelayed")
      ? this.#fate.upTo(this.#fate.faults.deliveryDelayMs)
      : this.#fate.within("latencyMs");
    const run = () => {
      this.#pumping = false;
      this.#deliver();
    };
    if (ms > 0) this.#clock.after(ms, run);
    else queueMicrotask(run);
  }

  #deliver(): void {
    const stream = this.#stream;
    if (!stream || this.#stopped || !this.#client.up) return;
    const found =
      this.#options.existing && !this.#sentExisting
        ? stream.lastPerSubject(this.#filter)
        : stream.read(this.#filter, this.#sent + 1);
    const upTo = stream.lastSeq;
    for (const message of found)
      if (message.seq > this.#sent && matches(this.#filter, message.subject)) this.#send(stream, message);
    this.#sent = upTo;
    this.#sentExisting = true;
    if (!this.#caughtUp) this.#client.guarded(`view of ${this.#filter}`, () => this.#reportCaughtUp());
  }

  #send(stream: MemoryStream, message: StoredMessage): void {
    this.#client.guarded(`view of ${this.#filter}`, () => {
      if (this.#stopped || stream !== this.#stream || message.seq <= this.#arrived) return;
      this.#arrived = message.seq;
      this.#options.onMessage(message);
    });
  }

  #reportCaughtUp(): void {
    if (this.#caughtUp || this.#stopped) return;
    this.#caughtUp = true;
    this.#options.onCaughtUp?.();
  }
}
