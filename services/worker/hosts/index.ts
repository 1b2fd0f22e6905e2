export { askForBlobs } from "./contexts.ts";
export type { Host } from "./host.ts";
export { HostPool } from "./host-pool.ts";
export { HostSession } from "./host-session.ts";
export type { HostPlace, Hosts } from "./hosts.ts";
export { HostedFailure, type RunHooks, type SessionHooks } from "./isolated/host-client.ts";
export {
  type BlobRequest,
  type Item,
  type ModelFacts,
  type RunFacts,
  type SessionFacts,
  stateKey,
} from "./isolated/protocol.ts";
