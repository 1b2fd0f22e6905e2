import { setTimeout as delay } from "node:timers/promises";
import { type Bus, connectBus, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { cpuMsOf } from "../../costs/process-cost.ts";
import { inFlight } from "../../stats.ts";
import { untilStatus } from "../../waiting.ts";
import type { Workload } from "../../workload.ts";

const perInstance = 100;
/** The default lease: 15 s, renewed every third of it. */
const renewEveryMs = 5000;

export const renewal: Workload = {
  name: "renewal",
  what: "what it costs one worker to keep its sessions: share of one core, messages per second",
  layouts: "one",
  async run(bench) {
    const sessions = bench.size(2000, 200);
    const rig = await bench.sessionRig();
    const worker = await rig.startWorker({ WORKER_TAGS: "keeper", WORKER_MAX_SESSIONS: String(sessions) });
    const bus = await connectBus({ url: rig.nats.url, blobBucket: subjects().blobBucket, announce: silent });
    try {
      const idle = await costOf(bus, worker.pid, bench.size(10_000, 1000));
      const handles = await inFlight(sessions / perInstance, 4, () =>
        rig.client.start("keep-sessions", { n: perInstance }),
      );
      for (const handle of handles) await untilStatus(rig.client, handle, "open");
      const owned = await costOf(bus, worker.pid, bench.size(20_000, renewEveryMs));
      for (const handle of handles) await handle.signal("go");
      const floorMessagesPerSecond = (sessions / renewEveryMs) * 1000;
      const messagesPerSecond = owned.messagesPerSecond - idle.messagesPerSecond;
      bench.emit({
        sessions,
        cpuShare: owned.cpuShare,
        floorCpuShare: idle.cpuShare,
        messagesPerSecond,
        floorMessagesPerSecond,
        ratio: messagesPerSecond / floorMessagesPerSecond,
        ratioOf: "messagesPerSecond",
      });
    } finally {
      await bus.close();
      await worker.end("SIGTERM");
    }
  },
};

/** CPU of the process and writes to the lease bucket, over a while. */
async function costOf(bus: Bus, pid: number, windowMs: number) {
  const written = async (): Promise<number> => (await bus.streamInfo("KV_leases"))?.lastSeq ?? 0;
  const before = { cpuMs: cpuMsOf(pid) ?? Number.NaN, written: await written(), at: performance.now() };
  await delay(windowMs); // the measurement itself, not a wait for something
  const ms = performance.now() - before.at;
  return {
    cpuShare: ((cpuMsOf(pid) ?? Number.NaN) - before.cpuMs) / ms,
    messagesPerSecond: (((await written()) - before.written) / ms) * 1000,
  };
}
