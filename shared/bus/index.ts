export { Bucket, type BucketEvent, type Entry, type WriteOptions, type WriteOutcome } from "./bucket.ts";
export type * from "./bus.ts";
export { type Decoded, type DecodeLimits, decode, encode, parseJson } from "./codec.ts";
export { type BusOptions, connectBus } from "./nats-bus.ts";
export * from "./subjects.ts";
export * from "./topology.ts";
