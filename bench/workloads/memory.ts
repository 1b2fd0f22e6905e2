import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { rssBytesOf } from "../costs/process-cost.ts";
import { Floor } from "../floor/floor.ts";
import { Rig } from "../rig.ts";
import { inFlight } from "../stats.ts";
import { untilRunning } from "../waiting.ts";
import type { Bench, Workload } from "../workload.ts";
import { shortInstances } from "./w3-instances.ts";

const probe = fileURLToPath(new URL("../probe.js", import.meta.url));
const mb = 1024 * 1024;

interface Memory {
  heapUsed: number;
  rss: number;
}

export const memory: Workload = {
  name: "memory",
  what: "an idle orchestrator, and what each waiting instance adds",
  layouts: "one",
  async run(bench) {
    const instances = bench.size(10_000, 1000);
    const idleJavaScriptMb = await idleMbWithoutLoader(bench);
    const rig = await Rig.start(bench.options, {
      layout: bench.layout,
      orchestratorArgv: ["--expose-gc", "--import", probe],
    });
    const { orchestrator } = rig;
    if (!orchestrator) throw new Error("no orchestrator");
    try {
      await delay(1000); // the orchestrator must be idle
      const idleMb = rssMb(orchestrator.pid);
      await shortInstances(rig.client, 500);
      const before = await orchestrator.ask<Memory>("memory");
      const handles = await inFlight(instances, 64, () => rig.client.start("wait-for-signal"));
      for (const handle of handles) await untilRunning(rig.client, handle.instanceId);
      const after = await orchestrator.ask<Memory>("memory");
      const floor = await Floor.start(rig.nats, bench.layout);
      const floorIdleMb = rssMb(floor.pids.orchestrator ?? 0);
      await floor.stop();
      const rssKbPerInstance = (after.rss - before.rss) / instances / 1024;
      bench.emit({
        idleMb,
        idleJavaScriptMb,
        floorIdleMb,
        instances,
        rssKbPerInstance,
        heapKbPerInstance: (after.heapUsed - before.heapUsed) / instances / 1024,
        rssMb: after.rss / mb,
        ratio: idleMb / floorIdleMb,
        ratioOf: "idleMb",
        aim: "idleMb < 120, rssKbPerInstance < 10",
        met: idleMb < 120 && rssKbPerInstance < 10,
      });
    } finally {
      await rig.stop();
    }
  },
};

/** An application in TypeScript brings a loader and its thread along: this is one without. */
async function idleMbWithoutLoader({ options, layout }: Bench): Promise<number> {
  const HOLDFAST_APP = fileURLToPath(new URL("../app/plain.mjs", import.meta.url));
  await using rig = await Rig.start(options, { layout, env: { HOLDFAST_APP } });
  await delay(1000);
  return rssMb(rig.orchestrator?.pid ?? 0);
}

const rssMb = (pid: number): number => (rssBytesOf(pid) ?? Number.NaN) / mb;
