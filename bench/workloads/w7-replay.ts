import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ReplayResult } from "../replay/replay.ts";
import { ratioOf } from "../report.ts";
import { untilStatus } from "../waiting.ts";
import type { Workload } from "../workload.ts";

/** An instance read back and replayed as after a cache miss. The floor reads and parses the same messages. */
export const w7: Workload = {
  name: "W7",
  what: "replay of a history of 10 000 events: events per second",
  layouts: "both-unless-quick",
  async run(bench) {
    const rig = await bench.rig();
    const handle = await rig.client.start("long-history", {
      n: bench.size(5000, 1000),
      width: bench.size(1, 10),
    });
    await untilStatus(rig.client, handle, "long");
    const child = fork(fileURLToPath(new URL("../replay/replay.ts", import.meta.url)), [
      rig.nats.url,
      handle.instanceId,
      rig.layout,
      String(bench.size(10, 5)),
    ]);
    const [result] = (await Promise.race([
      once(child, "message"),
      once(child, "exit").then(() => Promise.reject(new Error("the replay died"))),
    ])) as [ReplayResult];
    const perSecond = (ms: number): number => (result.events / ms) * 1000;
    bench.emit({
      events: result.events,
      commits: result.commits,
      eventsPerSecond: perSecond(result.totalMs),
      floorEventsPerSecond: perSecond(result.floorMs),
      readMs: result.readMs,
      replayMs: result.totalMs - result.readMs,
      firstMs: result.firstMs,
      ...ratioOf("eventsPerSecond", result.floorMs, result.totalMs),
    });
  },
};
