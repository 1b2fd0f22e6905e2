import type { AnySession } from "../../../shared/definitions/index.ts";
import type { Host } from "./host.ts";

/** A session's place in a host. */
export interface HostPlace {
  readonly host: Host;
  /** `suspect`: code that will not end may still run there. */
  leave(options?: { suspect?: boolean }): void;
}

export interface Hosts {
  /** Resolves with a host that said it is ready. Undefined stands for bare sessions. */
  acquire(definition: AnySession | undefined, signal: AbortSignal): Promise<HostPlace>;
  stop(): Promise<void>;
}
