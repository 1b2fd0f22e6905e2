import { type Clock, systemClock } from "../runtime/index.ts";

/** The same monotonic time on every thread of the process; `performance.now()` starts anew on each thread. */
export const processClock: Clock = {
  ...systemClock,
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
};
