import { setTimeout as delay } from "node:timers/promises";
import { connectBus, subjects } from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import { cpuMsOf } from "../process-cost.ts";
import { Rig } from "../rig.ts";
import { inFlight } from "../stats.ts";
import { untilStatus } from "../waiting.ts";
import type { Workload } from "../workload.ts";

const perInstance = 100;
/** The default lease: 15 s, renewed every third of it. */
const renewEveryMs = 5000;

export const renewal: Workload = {
  name: "renewal",
  what: "what it costs one worker to keep its sessions: share of one core, messages per second",
  bothLayouts: false,
  async run(bench) {
    const sessions = bench.size(2000, 300);
    const windowMs = bench.size(20_000, 5000);
    const rig = await Rig.start(bench.options, {
      layout: bench.layout,
      watcher: true,
      env: { WORKER_MAX_SESSIONS: String(sessions) },
    });
    const bus = await connectBus({ url: rig.nats.url, blobBucket: subjects().blobBucket, announce: silent });
    const pid = rig.workers[0]?.pid ?? 0;
    const written = async (): Promise<number> => (await bus.streamInfo("KV_leases"))?.lastSeq ?? 0;
    const cost = async () => {
      const before = { cpuMs: cpuMsOf(pid) ?? Number.NaN, written: await written(), at: performance.now() };
      await delay(windowMs); // the measurement itself, not a wait for something
      const ms = performance.now() - before.at;
      return {
        cpuShare: ((cpuMsOf(pid) ?? Number.NaN) - before.cpuMs) / ms,
        perSecond: (((await written()) - before.written) / ms) * 1000,
      };
    };
    try {
      const idle = await cost();
      const handles = await inFlight(sessions / perInstance, 4, () =>
        rig.client.start("keep-sessions", { n: perInstance }),
      );
      for (const handle of handles) await untilStatus(rig.client, handle, "open");
      const owned = await cost();
      const floorMessagesPerSecond = (sessions / renewEveryMs) * 1000;
      const messagesPerSecond = owned.perSecond - idle.perSecond;
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
      await rig.stop();
    }
  },
};
