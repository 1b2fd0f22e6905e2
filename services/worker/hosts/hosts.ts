import type { AnySession } from "../../../shared/definitions/index.ts";
import type { Host } from "./host.ts";

/** A session's place in a host. */
export interface HostPlace {
  readonly host: Host;
  /** A call is over: the moment to look whether the host has served enough. */
  ran(): void;
  /** Told once when the host should go: its sessions are to move when they can. At once where it is so already. */
  onRetire(listener: (why: string) => void): () => void;
  /** `suspect`: code that will not end may still run there. */
  leave(options?: { suspect?: boolean }): void;
}

export interface Hosts {
  /** Resolves with a host that said it is ready. Undefined stands for bare sessions. */
  acquire(definition: AnySession | undefined, signal: AbortSignal): Promise<HostPlace>;
  stop(): Promise<void>;
}
