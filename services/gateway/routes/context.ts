import type { Bus, Subjects } from "../../../shared/bus/index.ts";
import type { Runtime } from "../../../shared/runtime/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import type { Audit } from "../audit.ts";
import type { GatewayConfig } from "../config.ts";
import type { Histories } from "../histories.ts";
import type { Origins } from "../http/guards.ts";
import type { LiveView } from "../live/live-view.ts";
import type { Overview } from "../live/overview.ts";
import type { StreamWatch } from "../live/stream-watch.ts";
import type { Access, IssuedTokens, RateLimit } from "../security/index.ts";

/** The parts of the gateway that routes use. */
export interface GatewayParts {
  bus: Bus;
  names: Subjects;
  client: Client;
  histories: Histories;
  live: LiveView;
  streams: StreamWatch;
  audit: Audit;
  access: Access;
  issuedTokens: IssuedTokens;
  origins: Origins;
  /** Limit of wrong tokens per address. */
  wrongTokens: RateLimit;
  config: GatewayConfig;
  runtime: Runtime;
  version: string;
  /** Current, or the last known state while NATS is away. */
  overview(): Promise<Overview>;
}
