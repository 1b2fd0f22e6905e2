export { type BeatAddress, beatAddress, beatKeys, beatTtlMs, silenceFailure } from "./heartbeat-keys.ts";
export { type Lease, type Leases, type LossWhy, leaseTiming, requireTtl } from "./lease.ts";
export { LeaseKeeper } from "./lease-keeper.ts";
export { isExpiry, type LeaseKeyState, LeaseStore, readLease, tombstoneTtlMs } from "./lease-store.ts";
export { type DeadHolder, releaseDead, releaseLeasesOf } from "./release-dead.ts";
export type { LeaseConnection, ThreadSetup } from "./thread-protocol.ts";
export { renewalThread, ThreadedLeaseKeeper } from "./threaded-lease-keeper.ts";
