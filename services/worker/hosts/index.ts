export type { Host, HostEnd } from "./host.ts";
export { HostedFailure, type RunHooks, type SessionHooks } from "./host-client.ts";
export { HostPool, type HostPoolOptions } from "./host-pool.ts";
export { HostSession } from "./host-session.ts";
export type { HostPlace, Hosts } from "./hosts.ts";
export { type Item, type ModelFacts, type RunFacts, type SessionFacts, stateKey } from "./protocol.ts";
