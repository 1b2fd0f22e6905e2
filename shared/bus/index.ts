export { Bucket, type BucketEvent, type Entry, type WriteOptions, type WriteOutcome } from "./bucket.ts";
export type * from "./bus.ts";
export { type Decoded, type DecodeLimits, decode, encode, parseJson } from "./codec.ts";
export { type Burial, type BurialDeps, bury } from "./dead-letters.ts";
export {
  type MicroEndpoint,
  type MicroReply,
  type MicroService,
  type MicroServiceSpec,
  startMicroService,
} from "./micro-service.ts";
export { type BusOptions, connectBus } from "./nats-bus.ts";
export { type PayloadLimits, Payloads } from "./payloads.ts";
export { scheduledFor } from "./schedules.ts";
export { type ClockSkew, readServerClocks, type ServerClockReading, skewOf } from "./server-clocks.ts";
export * from "./subjects.ts";
export * from "./topology.ts";
export { TypedBucket, type TypedEntry, type TypedEvent } from "./typed-bucket.ts";
