/**
 * How long the turn that runs now has been seen to run. A process that was paused, or got no time of its processor, stands
 * still with all its threads: between two looks only as much counts as looks are apart.
 */
import type { TurnMark } from "./turn-mark.ts";

type RunningTurn = NonNullable<ReturnType<TurnMark["get"]>>;

export class TurnWatch {
  /** How far apart looks are. */
  readonly everyMs: number;
  readonly #limitMs: number;
  #seen: { turn: RunningTurn; ms: number; at: number } | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
    this.everyMs = limitMs / 4;
  }

  /** Returns the turn if it has been seen to run for longer than the limit. `now` as in the mark. */
  look(turn: RunningTurn | undefined, now: number): RunningTurn | undefined {
    const before = this.#seen;
    if (turn === undefined) this.#seen = undefined;
    else if (before?.turn.instanceId === turn.instanceId && before.turn.since === turn.since)
      this.#seen = { turn, ms: before.ms + Math.min(now - before.at, 1.5 * this.everyMs), at: now };
    else this.#seen = { turn, ms: Math.min(now - turn.since, this.everyMs), at: now };
    return this.#seen && this.#seen.ms > this.#limitMs ? this.#seen.turn : undefined;
  }
}
