export { type Backoff, backoffMs, jittered } from "./backoff.ts";
export { type Clock, sleep, systemClock, type Timer } from "./clock.ts";
export { type Duration, parseDuration } from "./duration.ts";
export { type Announce, type Happening, silent } from "./happenings.ts";
export { once, type Service, within } from "./lifecycle.ts";
export { hash32, type Random, seededRandom, systemRandom, token, uuid } from "./random.ts";
export { type Runtime, systemRuntime } from "./runtime.ts";
export { SparseMap } from "./sparse-map.ts";
export { startThread } from "./start-thread.ts";
export {
  activeTraceparent,
  derivedTrace,
  formatTraceparent,
  insideTrace,
  parseTraceparent,
} from "./trace.ts";
export { notSerialisable, writeJson } from "./write-json.ts";
