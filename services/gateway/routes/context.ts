import type { Bus } from "../../../shared/bus/bus.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import type { Runtime } from "../../../shared/runtime/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import type { Audit } from "../audit.ts";
import type { GatewayConfig } from "../config.ts";
import type { Histories } from "../histories.ts";
import type { LiveView } from "../live/live-view.ts";
import type { Overview } from "../live/overview.ts";
import type { StreamWatch } from "../live/stream-watch.ts";
import type { RateLimit, Tokens } from "../security/index.ts";

/** What routes act on. */
export interface GatewayParts {
  bus: Bus;
  names: Subjects;
  client: Client;
  histories: Histories;
  live: LiveView;
  streams: StreamWatch;
  audit: Audit;
  tokens: Tokens;
  /** How often an address may be wrong about a token. */
  wrongTokens: RateLimit;
  config: GatewayConfig;
  runtime: Runtime;
  version: string;
  /** As of now, or as of what is known while the bus is away. */
  overview(): Promise<Overview>;
}
