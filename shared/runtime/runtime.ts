import { type Clock, systemClock } from "./clock.ts";
import { type Announce, silent } from "./happenings.ts";
import { type Random, systemRandom } from "./random.ts";

/** Everything nondeterministic, and the function that announces happenings, in one argument. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly announce: Announce;
}

export const systemRuntime = (announce: Announce = silent): Runtime => ({
  clock: systemClock,
  random: systemRandom,
  announce,
});
