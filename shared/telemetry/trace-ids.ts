/** Ids for spans: random, unless the caller chose them. */
import { randomBytes } from "node:crypto";

export class ChosenIds {
  #chosen: { traceId: string; spanId: string } | undefined;

  /** The span begun in `act` gets these ids. */
  choose(ids: { traceId: string; spanId: string }, act: () => void): void {
    this.#chosen = ids;
    try {
      act();
    } finally {
      this.#chosen = undefined;
    }
  }

  generateTraceId(): string {
    return this.#chosen?.traceId ?? randomBytes(16).toString("hex");
  }

  generateSpanId(): string {
    return this.#chosen?.spanId ?? randomBytes(8).toString("hex");
  }
}
