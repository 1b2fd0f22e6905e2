/**
 * Snapshots of a state for people: taken between calls, no more often than configured, and bounded in size.
 */
import type { AnySession } from "../../../../shared/definitions/index.ts";
import { messageOf } from "../../../../shared/errors/index.ts";
import type { Clock } from "../../../../shared/runtime/index.ts";
import type { HostSession } from "../../hosts/index.ts";

const largest = 1024;

export class Snapshots {
  readonly #clock: Clock;
  readonly #everyMs: number;
  #takenAt = Number.NEGATIVE_INFINITY;
  #latest: unknown;

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  get latest(): unknown {
    return this.#latest;
  }

  refresh(definition: AnySession | undefined, state: HostSession): void {
    const now = this.#clock.monotonic();
    if (!definition?.snapshot || now - this.#takenAt < this.#everyMs) return;
    this.#takenAt = now;
    state.snapshot().then(
      (value) => {
        this.#latest = shortened(value);
      },
      (error: unknown) => {
        this.#latest = { error: messageOf(error) };
      },
    );
  }
}

function shortened(value: unknown): unknown {
  try {
    const text = JSON.stringify(value) ?? "null";
    return text.length <= largest ? JSON.parse(text) : `${text.slice(0, largest)}…`;
  } catch {
    return "this snapshot has no JSON form";
  }
}
