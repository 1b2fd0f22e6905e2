import { machineMs } from "../../clock.ts";
import { privateBytesOf } from "../../costs/process-cost.ts";
import { judged } from "../../report.ts";
import { Rig } from "../../rig.ts";
import { percentile } from "../../stats.ts";
import { until } from "../../waiting.ts";
import type { Workload } from "../../workload.ts";

/** SIGKILL of a supervised worker → SessionLostError in the orchestration, long before the lease is over (D1). */
export const provedLoss: Workload = {
  name: "proved",
  what: "supervised worker killed until the orchestration knows",
  layouts: "one",
  async run(bench) {
    const rounds = bench.size(20, 5);
    await using rig = await Rig.start(bench.options, { layout: bench.layout, workers: 0, watcher: true });
    const known: number[] = [];
    let supervisorBytes: number | undefined;
    while (known.length < rounds) {
      const supervisor = await rig.startWorker({ WORKER_SUPERVISED: "true" });
      const handle = await rig.client.start("lose-session", { ttlMs: 600_000 });
      await until(rig.client, handle.instanceId, ({ customStatus }) => customStatus !== undefined);
      const worker = (await rig.client.workers.list()).at(-1);
      if (!worker || worker.pid === supervisor.pid) throw new Error("the worker has no supervisor");
      supervisorBytes = privateBytesOf(supervisor.pid);
      const killedAt = machineMs();
      process.kill(worker.pid, "SIGKILL");
      known.push(((await handle.result()) as number) - killedAt);
      await supervisor.end("SIGTERM");
    }
    const p50Ms = percentile(known, 0.5);
    bench.emit({
      rounds,
      p50Ms,
      p99Ms: percentile(known, 0.99),
      ...(supervisorBytes !== undefined && { supervisorMb: supervisorBytes / 1e6 }),
      ...judged(p50Ms, { atMost: 200 }),
    });
  },
};
