import { type Clock, systemClock } from "../runtime/index.ts";

/** The same monotonic time on every thread of the process; `performance.now()` begins anew on each. */
export const processClock: Clock = {
  ...systemClock,
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
};
