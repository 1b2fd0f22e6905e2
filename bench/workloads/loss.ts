import { connectBus, subjects } from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import { machineMs } from "../clock.ts";
import { judged } from "../report.ts";
import { Rig } from "../rig.ts";
import type { ServiceProcess } from "../service.ts";
import { percentile } from "../stats.ts";
import { until } from "../waiting.ts";
import type { Workload } from "../workload.ts";

/**
 * SIGKILL of the worker → SessionLostError in the orchestration, less the lease's TTL. The floor is the server's own
 * marker of the expiry, as a bare subscriber sees it.
 */
export const loss: Workload = {
  name: "loss",
  what: "worker killed until the orchestration knows, less the TTL",
  bothLayouts: false,
  async run(bench) {
    const rounds = bench.size(20, 5);
    const ttlMs = bench.size(2000, 1000);
    const rig = await Rig.start(bench.options, { layout: bench.layout, workers: 0, watcher: true });
    const markers = await watchMarkers(rig);
    try {
      const workers = new Map<string, ServiceProcess>();
      const addWorker = async (index: number): Promise<void> => {
        const nodeId = `bench-${index}`;
        workers.set(nodeId, await rig.startWorker({ WORKER_NODE_ID: nodeId }));
      };
      await Promise.all([addWorker(0), addWorker(1)]);
      const heard: number[] = [];
      const marked: number[] = [];
      let early = 0;
      for (let round = 0; round < rounds; round++) {
        const handle = await rig.client.start("lose-session", { ttlMs });
        const { customStatus } = await until(rig.client, handle.instanceId, (view) =>
          isHeld(view.customStatus),
        );
        const nodeId = [...workers.keys()].find((id) => holderOf(customStatus).startsWith(id));
        const owner = workers.get(nodeId ?? "");
        if (!owner || !nodeId) throw new Error(`nobody known holds it: ${JSON.stringify(customStatus)}`);
        markers.clear();
        const killedAt = machineMs();
        await owner.end("SIGKILL");
        workers.delete(nodeId);
        const next = addWorker(round + 2);
        const lostAt = (await handle.result()) as number;
        await next;
        // A machine too busy to renew in time loses a session before it is killed; that is no detection.
        if (lostAt < killedAt) early++;
        else {
          heard.push(lostAt - killedAt - ttlMs);
          marked.push((markers.firstAt ?? Number.NaN) - killedAt - ttlMs);
        }
      }
      const p99AfterTtlMs = percentile(heard, 0.99);
      bench.emit({
        rounds: heard.length,
        early,
        ttlMs,
        p50AfterTtlMs: percentile(heard, 0.5),
        p99AfterTtlMs,
        floorP50AfterTtlMs: percentile(marked, 0.5),
        floorP99AfterTtlMs: percentile(marked, 0.99),
        ratio: (ttlMs + percentile(heard, 0.5)) / (ttlMs + percentile(marked, 0.5)),
        ratioOf: "ttlMs + p50AfterTtlMs",
        ...judged(p99AfterTtlMs, { atMost: 1000 }),
      });
    } finally {
      await markers.stop();
      await rig.stop();
    }
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
