/**
 * `--soak`: W3's load for any length of time, one line per minute. Memory is that of the processes, latencies
 * are those of the minute: both stay flat if nothing leaks and nothing grows with the stored data.
 */

import { rssBytesOf } from "./costs/process-cost.ts";
import type { BenchOptions } from "./options.ts";
import { asJson, asText } from "./report.ts";
import { Rig } from "./rig.ts";
import { named, percentile } from "./stats.ts";
import { shortInstances } from "./workloads/w3-instances.ts";

const minuteMs = 60_000;

export async function soak(options: BenchOptions, ms: number): Promise<number> {
  await using rig = await Rig.start(options, { layout: options.layout ?? "shared", watcher: true });
  const begun = performance.now();
  for (let line = 1; performance.now() - begun < ms; line++) {
    const lineMs = Math.min(minuteMs, ms / 3);
    const until = begun + line * lineMs;
    const latencies: number[] = [];
    const from = performance.now();
    while (performance.now() < until) latencies.push(...(await shortInstances(rig.client, 500)).latencies);
    const rss = Object.entries(rig.pids).map(([name, pid]) => [
      name,
      (rssBytesOf(pid ?? 0) ?? 0) / 1_048_576,
    ]);
    const figures = {
      ...{
        workload: "soak",
        layout: rig.layout,
        minute: ((performance.now() - begun) / minuteMs).toFixed(1),
      },
      instances: latencies.length,
      instancesPerSecond: (latencies.length / (performance.now() - from)) * 1000,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      ...named("rssMb", Object.fromEntries(rss)),
    };
    process.stdout.write(`${options.json ? asJson(figures) : asText(figures)}\n`);
  }
  return 0;
}
