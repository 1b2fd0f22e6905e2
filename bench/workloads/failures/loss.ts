import { connectBus, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { machineMs } from "../../clock.ts";
import { judged } from "../../report.ts";
import type { Rig } from "../../rig.ts";
import { percentile } from "../../stats.ts";
import { until } from "../../waiting.ts";
import type { Workload } from "../../workload.ts";

/**
 * SIGKILL of the worker → SessionLostError in the orchestration, less the lease's TTL. The floor is the
 * server's own expiry marker, as a bare subscriber receives it.
 */
export const loss: Workload = {
  name: "loss",
  what: "worker killed until the orchestration knows, less the TTL",
  layouts: "one",
  async run(bench) {
    const rounds = bench.size(20, 5);
    const ttlMs = bench.size(2000, 1000);
    const rig = await bench.sessionRig();
    const markers = await watchMarkers(rig);
    const known: number[] = [];
    const marked: number[] = [];
    try {
      while (known.length < rounds) {
        const handle = await rig.client.start("lose-session", { ttlMs });
        const { customStatus } = await until(rig.client, handle.instanceId, (view) =>
          isHeld(view.customStatus),
        );
        markers.clear();
        const killedAt = machineMs();
        const gone = rig.killWorker(holderOf(customStatus));
        const next = rig.startWorker();
        const lostAt = (await handle.result()) as number;
        await Promise.all([gone, next]);
        // A machine too busy to renew in time loses a session before it is killed; that is no detection.
        if (lostAt < killedAt) continue;
        known.push(lostAt - killedAt - ttlMs);
        marked.push((markers.firstAt ?? Number.NaN) - killedAt - ttlMs);
      }
    } finally {
      await markers.stop();
    }
    const p99AfterTtlMs = percentile(known, 0.99);
    bench.emit({
      rounds,
      ttlMs,
      p50AfterTtlMs: percentile(known, 0.5),
      p99AfterTtlMs,
      floorP50AfterTtlMs: percentile(marked, 0.5),
      floorP99AfterTtlMs: percentile(marked, 0.99),
      ratio: (ttlMs + percentile(known, 0.5)) / (ttlMs + percentile(marked, 0.5)),
      ratioOf: "ttlMs + p50AfterTtlMs",
      ...judged(p99AfterTtlMs, { atMost: 1000 }),
    });
  },
};

const isHeld = (status: unknown): boolean => holderOf(status) !== "";

const holderOf = (status: unknown): string =>
  typeof status === "object" && status !== null && "workerId" in status ? String(status.workerId) : "";

async function watchMarkers({ nats }: Rig) {
  const names = subjects();
  const bus = await connectBus({ url: nats.url, blobBucket: names.blobBucket, announce: silent });
  let firstAt: number | undefined;
  const tail = await bus.tail("KV_leases", "$KV.leases.session.>", {
    existing: false,
    onMessage: ({ headers }) => {
      if (headers["Nats-Marker-Reason"] === "MaxAge") firstAt ??= machineMs();
    },
  });
  return {
    clear: () => {
      firstAt = undefined;
    },
    get firstAt() {
      return firstAt;
    },
    stop: async () => {
      await tail.stop();
      await bus.close();
    },
  };
}
