import type { Bus, PublishOptions, PublishOutcome, StoredMessage } from "../../../shared/bus/bus.ts";
import type { Clock } from "../../../shared/runtime/index.ts";

type Mood =
  | "well"
  /** Stores and does not say so. */
  | "mute"
  /** Neither stores nor answers. */
  | "away";

/** A lease bucket as the server keeps it, with its own idea of time and a mood. Only what leases use. */
export class LeaseServer {
  mood: Mood = "well";
  /** How long an answer takes. */
  latencyMs = 0;
  readonly writes: { subject: string; at: number; options: PublishOptions }[] = [];
  readonly #clock: Clock;
  readonly #last = new Map<string, StoredMessage>();
  #seq = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  bus(): Bus {
    return {
      clustered: () => false,
      publish: (subject: string, body: Uint8Array, options: PublishOptions) =>
        this.#publish(subject, body, options),
      last: async (_stream: string, subject: string) => this.last(subject),
    } as unknown as Bus;
  }

  last(subject: string): StoredMessage | undefined {
    return this.#last.get(subject);
  }

  store(subject: string, headers: Record<string, string>, body: Uint8Array = new Uint8Array()): number {
    const seq = ++this.#seq;
    this.#last.set(subject, { subject, seq, at: this.#clock.now(), headers, body });
    return seq;
  }

  async #publish(subject: string, body: Uint8Array, options: PublishOptions): Promise<PublishOutcome> {
    this.writes.push({ subject, at: this.#clock.monotonic(), options });
    const unanswered = async (): Promise<PublishOutcome> => {
      await this.#pass(options.timeoutMs ?? 0);
      return { kind: "unknown" };
    };
    if (this.mood === "away") return unanswered();
    const mute = this.mood === "mute";
    await this.#pass(this.latencyMs / 2);
    const outcome = this.#write(subject, body, options);
    if (mute) return unanswered();
    await this.#pass(this.latencyMs / 2);
    return outcome;
  }

  #write(subject: string, body: Uint8Array, options: PublishOptions): PublishOutcome {
    if ((this.#last.get(subject)?.seq ?? 0) !== options.expectLastSeq) return { kind: "conflict" };
    const seq = this.store(subject, options.headers ?? {}, body);
    const released = options.headers?.["KV-Operation"] !== undefined;
    this.#clock.after(options.ttlMs ?? 0, () => {
      if (this.#last.get(subject)?.seq !== seq) return;
      if (released) this.#last.delete(subject);
      else this.store(subject, { "Nats-Marker-Reason": "MaxAge" });
    });
    return { kind: "stored", seq, duplicate: false };
  }

  #pass(ms: number): Promise<void> {
    return ms === 0 ? Promise.resolve() : new Promise((resolve) => this.#clock.after(ms, resolve));
  }
}
