/** A live view of one client: pauses while the client is disconnected and continues where it was. */
import type { Stoppable, StoredMessage } from "../../bus/index.ts";
import type { Clock } from "../../runtime/index.ts";
import type { ClientState } from "./client-state.ts";
import type { Fate } from "./faults.ts";
import type { MemoryStream } from "./memory-stream.ts";
import { matches } from "./subject-match.ts";

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
  #seen: number;
  #caughtUp: boolean;
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
    this.#seen = options.existing ? 0 : stream.lastSeq;
    this.#caughtUp = false;
    this.#unlisten = client.onState((state) => {
      if (state.kind === "reconnected") this.#pump();
    });
    this.follow(stream);
  }

  /** Also called when a stream of that name was created again: all its messages are new. */
  follow(stream: MemoryStream): void {
    if (this.#stream && this.#stream !== stream) this.#seen = 0;
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
      this.#options.existing && !this.#caughtUp
        ? stream.lastPerSubject(this.#filter)
        : stream.read(this.#filter, this.#seen + 1);
    const upTo = stream.lastSeq;
    for (const message of found) {
      if (this.#stopped) return;
      if (message.seq <= this.#seen || !matches(this.#filter, message.subject)) continue;
      this.#client.guarded(`view of ${this.#filter}`, () => this.#options.onMessage(message));
    }
    this.#seen = upTo;
    if (this.#caughtUp || this.#stopped) return;
    this.#caughtUp = true;
    this.#options.onCaughtUp?.();
  }
}
