/**
 * A process that holds one lease on a renewal thread. It tells its parent what it believes: once it has the lease, and
 * at the very first turn of its loop after it was paused.
 */
import { ThreadedLeaseKeeper } from "../../../shared/leases/index.ts";
import { systemRuntime } from "../../../shared/runtime/index.ts";

const [url = "", key = "", ttlMs = "2000"] = process.argv.slice(2);
const keeper = new ThreadedLeaseKeeper({
  connection: { url },
  bucket: "leases",
  runtime: systemRuntime(),
  ttlMs: Number(ttlMs),
});
await keeper.start();
const outcome = await keeper.claim(key, { v: 1, holder: "child" });
if (outcome.kind !== "granted") throw new Error(JSON.stringify(outcome));
const { lease } = outcome;
keeper.onLost((_, why) => process.send?.({ kind: "lost", why, held: keeper.isHeld(lease) }));
process.send?.({ kind: "granted", held: keeper.isHeld(lease) });

let before = performance.now();
setInterval(() => {
  const now = performance.now();
  if (now - before > Number(ttlMs) / 2) process.send?.({ kind: "woke", held: keeper.isHeld(lease) });
  before = now;
}, 20);
