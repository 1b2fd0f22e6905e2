import type { AnySession } from "../../../shared/definitions/index.ts";
import type { Host } from "./host.ts";

/** A session's place in a host. */
export interface HostPlace {
  readonly host: Host;
  /** A call is over: checks whether the host has served long enough. */
  ran(): void;
  /**
   * Calls the listener once when the host should end and its sessions should move; at once if that is so
   * already.
   */
  onRetire(listener: (why: string) => void): () => void;
  /** `suspect`: code that will not end may still run there. */
  leave(options?: { suspect?: boolean }): void;
}

export interface Hosts {
  /** Resolves with a host that has reported ready. Without a definition: a host for bare sessions. */
  acquire(definition: AnySession | undefined, signal: AbortSignal): Promise<HostPlace>;
  stop(): Promise<void>;
}
