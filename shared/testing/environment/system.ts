/** The engine behind a test environment: the in-memory twin, or services on a real server. */
import type { App } from "../../definitions/index.ts";
import type { Clock } from "../../runtime/index.ts";
import type { Client } from "../../sdk/index.ts";
import type { OnPoint } from "../world/members.ts";

export type ServiceName = "worker" | "orchestrator" | "watcher";

export interface SystemMember {
  readonly id: string;
  /** Like kill -9. */
  kill(): void;
}

export interface SystemOptions {
  app: App;
  seed: number;
  alwaysReplay: boolean;
  /** Epoch milliseconds at which its calendar begins; undefined: the system decides. */
  startsAt: number | undefined;
  onPoint: OnPoint;
  /** Number of running pieces of user code, except those that wait for this system's clock. */
  busy(): number;
  /** Grows with every record of an instance. */
  progress(): number;
  /** The error for a caller that waits for something that will not come; `lines` add detail. */
  stuck(lines: readonly string[]): Error;
}

/** An engine for one test. */
export interface TestSystem {
  readonly client: Client;
  readonly clock: Clock;
  /** Resolves when everything a member needs exists. */
  prepare(): Promise<void>;
  /** Starts one more member; resolves when it is ready. */
  join(service: ServiceName): Promise<SystemMember>;
  /** Awaits the work while time passes. Rejects when nothing is left that could complete it. */
  wait<T>(work: Promise<T>): Promise<T>;
  skip(ms: number): Promise<void>;
  outage(ms: number): Promise<void>;
  /** Closes everything. The members are dead by then. */
  close(): Promise<void>;
}
