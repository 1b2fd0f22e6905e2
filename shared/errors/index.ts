export { activityErrorFrom, childErrorFrom, failureOf, fromFailure, toFailure } from "./failure.ts";
export { Fault, type FaultKind, isFault } from "./fault.ts";
export { messageOf } from "./message-of.ts";
export { unparking } from "./unparking.ts";
export * from "./user-errors.ts";
export * from "./value-limits.ts";
