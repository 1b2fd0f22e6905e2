import type { LossReason, WorkerInfo } from "../../../schemas/index.ts";
import type { Isolation } from "../../../shared/definitions/index.ts";
import type { HostClient } from "./isolated/host-client.ts";

/** Why a host ended. Its sessions are lost with exactly this reason. */
export interface HostEnd {
  reason: Extract<LossReason, "crashed" | "hung" | "recycled">;
  detail: string;
}

/** A place where sessions' states live and their code runs. */
export interface Host {
  readonly id: string;
  readonly isolation: Isolation;
  readonly client: HostClient;
  /** Calls the listener once, if the host ended other than by `end`. */
  onLost(listener: (end: HostEnd) => void): () => void;
  /** Resident memory by the host's last report; undefined if the host shares the worker's process. */
  rssBytes(): number | undefined;
  /** The host as the worker's register shows it; undefined if the host is the worker's own thread. */
  info(): WorkerInfo["sessions"][number]["host"];
  /** Ends the host even if code runs there. Resolves when nothing of it is left. */
  end(): Promise<void>;
}
