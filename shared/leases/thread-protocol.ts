/** What the two threads say to each other. They are one program of one build: types are enough, nothing is parsed. */
import type { LeaseValue } from "../../schemas/index.ts";
import type { BusOptions } from "../bus/index.ts";
import { Fault, type FaultKind, isFault } from "../errors/index.ts";
import type { Happening } from "../runtime/index.ts";
import type { LossWhy } from "./lease.ts";

/** How the thread reaches the server: what `connectBus` takes, less what cannot cross threads. */
export type LeaseConnection = Omit<BusOptions, "announce" | "signal">;

export interface ThreadSetup {
  connection: LeaseConnection;
  bucket: string;
  ttlMs: number;
  /** A holder silent for longer gives its leases up; absent: each lease's own TTL. */
  stallLimitMs: number | undefined;
  giveUpAfterMs: number | undefined;
  /** Prefix of the subjects under which instances are told of a session whose holder stalled. Absent: nobody is told. */
  prefix: string | undefined;
  /** When the main loop last turned. */
  beat: SharedArrayBuffer;
}

export type ToThread =
  /** `id` also names the lease from then on. `heldUntil` is where its deadline is kept. */
  | {
      kind: "claim";
      id: number;
      key: string;
      value: LeaseValue;
      ttlMs: number | undefined;
      heldUntil: SharedArrayBuffer;
    }
  | { kind: "release"; id: number; lease: number }
  | { kind: "stop" };

export type Answer =
  | { kind: "granted"; epoch: number; ttlMs: number }
  | { kind: "taken"; why: "held" | "spent"; holder: string | undefined; revision: number }
  | { kind: "released" }
  | { kind: "gone" }
  | { kind: "failed"; fault: PlainFault };

export type FromThread =
  | { kind: "ready" }
  | { kind: "refused"; fault: PlainFault }
  | { kind: "answer"; id: number; answer: Answer }
  | { kind: "lost"; lease: number; why: LossWhy }
  | { kind: "happened"; happening: Happening }
  | { kind: "stopped" };

export interface PlainFault {
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
