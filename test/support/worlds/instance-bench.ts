/** Specs of one instance: each runs live and in always-replay mode, and what was written is compared. */
import { expect, test } from "vitest";
import {
  type BenchOptions,
  Bench as KitBench,
  type Mode,
  type Replayed,
} from "../../../shared/testing/story/instance-bench.ts";

export type { BenchOptions, BenchTurn, Mode } from "../../../shared/testing/story/instance-bench.ts";

/** Dropping the copy in memory changes nothing: neither its state, nor what its last commit asked for (T3, T8). */
const sameAgain = ({ before, after, effectsBefore, effectsAfter }: Replayed): void => {
  // What was ignored was not written down either.
  expect(after).toEqual(before);
  expect(effectsAfter).toEqual(effectsBefore);
};

type Definitions = Record<string, unknown>;

export class Bench extends KitBench {
  constructor(definitions: Definitions, mode?: Mode, options: BenchOptions = {}) {
    super(definitions, mode, { onReplay: sameAgain, ...options });
  }
}

/** Runs a spec live and in always-replay mode. Both must write the same history and ask for the same effects. */
export function scenario(
  title: string,
  definitions: Definitions,
  body: (bench: Bench) => Promise<void>,
  options: BenchOptions = {},
): void {
  test(title, async () => {
    const [live, replay] = [
      new Bench(definitions, "live", options),
      new Bench(definitions, "replay", options),
    ];
    await body(live);
    await body(replay);
    expect(replay.commits, "always replaying wrote another history").toEqual(live.commits);
    expect(replay.effects, "always replaying asked for other effects").toEqual(live.effects);
    if (live.fault) return;
    const before = live.instance;
    await live.reload();
    expect(live.state, "loading gave another state").toEqual(before.state);
  });
}
