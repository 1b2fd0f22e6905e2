/** Publishing by one client: lost, late and unanswered messages as the broker's fate has it. */
import { headersOf, type PublishOptions, type PublishOutcome } from "../../bus/index.ts";
import { Fault } from "../../errors/index.ts";
import type { ClientState } from "./client-state.ts";
import type { MemoryBroker } from "./memory-broker.ts";
import type { MemoryStream } from "./memory-stream.ts";

const defaultTimeoutMs = 5_000;

export class MemoryPublisher {
  readonly #broker: MemoryBroker;
  readonly #state: ClientState;

  constructor(broker: MemoryBroker, state: ClientState) {
    this.#broker = broker;
    this.#state = state;
  }

  async publish(subject: string, body: Uint8Array, options: PublishOptions): Promise<PublishOutcome> {
    headersOf(options); // Throws for options that the real bus refuses.
    if (body.length > this.#broker.maxPayloadBytes) {
      throw new Fault("contract", { code: "payload_too_large", message: `${body.length} bytes` });
    }
    const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    if (!(await this.#state.ready(timeoutMs))) return this.#unknown(0);
    const { fate } = this.#broker;
    if (fate.strikes("publishLost")) return this.#unknown(timeoutMs);
    if (fate.strikes("publishLate")) {
      this.#broker.after(timeoutMs + fate.upTo(timeoutMs), () => {
        try {
          this.#stream(subject).publish(subject, body, options);
        } catch {
          return; // The publish is refused, and the publisher no longer waits for the answer.
        }
      });
      return this.#unknown(timeoutMs);
    }
    const arrives = this.#arrive(subject, body, options, timeoutMs);
    if (!this.#state.stalled) return arrives;
    return (await this.#state.inTime(arrives, timeoutMs)) ?? this.#unknown(0);
  }

  async #arrive(
    subject: string,
    body: Uint8Array,
    options: PublishOptions,
    timeoutMs: number,
  ): Promise<PublishOutcome> {
    if (!(await this.#state.out())) return this.#unknown(0);
    const { fate } = this.#broker;
    const stream = this.#stream(subject);
    if (this.#broker.silent.has(stream.spec.name)) return this.#unknown(timeoutMs);
    if (this.#broker.storageFull) {
      throw new Fault("transient", { code: "storage_full", message: "the store takes nothing more" });
    }
    const outcome = stream.publish(subject, body, options);
    if (fate.strikes("publishUnanswered")) return this.#unknown(timeoutMs);
    return (await this.#state.back()) ? outcome : this.#unknown(0);
  }

  /** BUS-1: resolves after the time the publisher would have waited, or at once if the connection is lost. */
  #unknown(afterMs: number): Promise<PublishOutcome> {
    if (this.#state.over && !this.#state.killed) throw this.#state.unavailable();
    if (afterMs === 0) return Promise.resolve({ kind: "unknown" });
    return new Promise((resolve) => {
      this.#broker.clock.after(afterMs, () => {
        if (!this.#state.killed) resolve({ kind: "unknown" });
      });
    });
  }

  #stream(subject: string): MemoryStream {
    const stream = this.#broker.streamFor(subject);
    if (!stream) throw noStream(`publish to ${subject}`);
    return stream;
  }
}

export const noStream = (doing: string): Fault =>
  new Fault("transient", { code: "no_stream", message: `${doing}: no stream answers` });
