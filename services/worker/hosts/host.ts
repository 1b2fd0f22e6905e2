import type { LossReason } from "../../../schemas/index.ts";
import type { Isolation } from "../../../shared/definitions/index.ts";
import type { HostClient } from "./host-client.ts";

/** Why a host is no more. Its sessions are lost with exactly this. */
export interface HostEnd {
  reason: Extract<LossReason, "crashed" | "hung" | "recycled">;
  detail: string;
}

/** A place where sessions' states live and their code runs. */
export interface Host {
  readonly id: string;
  readonly isolation: Isolation;
  readonly client: HostClient;
  /** Once, when it ended other than by `end`. */
  onLost(listener: (end: HostEnd) => void): () => void;
  /** Resident memory as last heard of; undefined where it is the worker's own. */
  rssBytes(): number | undefined;
  /** Ends it, whatever runs there. Resolves when nothing of it is left. */
  end(): Promise<void>;
}
