export type {
  AccountInfo,
  BlobStore,
  Bus,
  BusState,
  ConsumeOptions,
  ConsumerInfo,
  ConsumerSpec,
  Consumption,
  CoreMessage,
  Delivery,
  Headers,
  PublishOptions,
  PublishOutcome,
  Reply,
  Schedule,
  Stoppable,
  StoredBlob,
  StoredMessage,
  StreamInfo,
  StreamSpec,
} from "./bus.ts";
export { type Decoded, decode, encode, parseJson, utf8 } from "./codec.ts";
export { type Burial, bury, buryDelivery, lettersOfWorkers } from "./delivery/dead-letters.ts";
export { headerNames } from "./delivery/header-names.ts";
export { type Attempt, activityReportId, madeSignalId, madeUpdateId } from "./delivery/message-ids.ts";
export { inInbox, publishAnew } from "./delivery/publish-anew.ts";
export { publishOrThrow } from "./delivery/publish-or-throw.ts";
export { publishUntilStored } from "./delivery/publish-until-stored.ts";
export { RecentKeys } from "./delivery/recent-keys.ts";
export { unknownKinds } from "./delivery/unknown-kind.ts";
export { leaseKeys } from "./lease-keys.ts";
export { type MicroReply, type MicroService, startMicroService } from "./micro-service.ts";
export { headersOf } from "./nats/publish.ts";
export { allowsRollUps } from "./nats/streams.ts";
export { type BusOptions, connectBus } from "./nats-bus.ts";
export { createKeys, type KeyPair, publicKeyOf, signWith } from "./nkeys.ts";
export { scheduledFor, scheduleHeader, scheduleText } from "./schedules.ts";
export { ServerClock } from "./server-clock.ts";
export { type ClockSkew, readServerClocks, type ServerClockReading, skewOf } from "./server-clocks.ts";
export { Bucket, type BucketEvent, type Entry } from "./storage/bucket.ts";
export { Payloads } from "./storage/payloads.ts";
export { TypedBucket, type TypedEntry, type TypedEvent } from "./storage/typed-bucket.ts";
export { hasWildcard, matches, overlap } from "./subject-match.ts";
export * from "./subjects.ts";
export { parseTtl } from "./time-to-live.ts";
export * from "./topology.ts";
