/**
 * The messages between the two threads. Both belong to one build, so types are enough and nothing is parsed.
 */
import type { LeaseValue } from "../../schemas/index.ts";
import type { BusOptions } from "../bus/index.ts";
import { Fault, type FaultKind, isFault } from "../errors/index.ts";
import type { Happening } from "../runtime/index.ts";
import type { ClaimedKey } from "./claim.ts";
import type { LossWhy } from "./lease.ts";

/**
 * How the thread connects to the server: the options of `connectBus`, without those that cannot be sent to
 * another thread.
 */
export type LeaseConnection = Omit<BusOptions, "announce" | "signal">;

export interface ThreadSetup {
  connection: LeaseConnection;
  bucket: string;
  ttlMs: number;
  /** A process whose main loop is blocked for longer gives its leases up; undefined: each lease's own TTL. */
  stallLimitMs: number | undefined;
  giveUpAfterMs: number | undefined;
  /** Prefix of the subjects for reports that a session's holder stalled. Undefined: no report is sent. */
  prefix: string | undefined;
  /** When the main loop last ran. */
  beat: SharedArrayBuffer;
}

export type ToThread =
  /** `id` also names the lease from then on. `heldUntil`: memory that holds the lease's deadline. */
  | {
      kind: "claim";
      id: number;
      key: string;
      value: LeaseValue;
      ttlMs: number | undefined;
      heldUntil: SharedArrayBuffer;
    }
  /** The main loop claimed the key; the thread renews it from now on. Not answered. */
  | { kind: "keep"; id: number; claimed: ClaimedKey; value: LeaseValue; heldUntil: SharedArrayBuffer }
  | { kind: "release"; id: number; lease: number }
  | { kind: "stop" };

export type Answer =
  | { kind: "granted"; epoch: number; ttlMs: number }
  | { kind: "taken"; why: "held" | "spent"; holder: string | undefined; revision: number }
  | { kind: "released" }
  | { kind: "gone" }
  | { kind: "failed"; fault: PlainFault };

export type FromThread =
  /** `skewMs`: largest difference between the servers' clocks. */
  | { kind: "ready"; skewMs?: number }
  | { kind: "refused"; fault: PlainFault }
  | { kind: "answer"; id: number; answer: Answer }
  | { kind: "lost"; lease: number; why: LossWhy }
  | { kind: "happened"; happening: Happening }
  | { kind: "stopped" };

interface PlainFault {
  kind: FaultKind;
  code: string;
  message: string;
}

export const toPlainFault = (error: unknown): PlainFault =>
  isFault(error)
    ? { kind: error.kind, code: error.code, message: error.message }
    : { kind: "bug", code: "lease_thread_failed", message: String(error) };

export const fromPlainFault = ({ kind, code, message }: PlainFault): Fault =>
  new Fault(kind, { code, message });
