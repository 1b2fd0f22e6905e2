import { CpuMeter } from "../costs/process-cost.ts";
import { judged } from "../report.ts";
import { Rig } from "../rig.ts";
import type { Workload } from "../workload.ts";
import { figuresOf, shortInstances, width } from "./w3-instances.ts";

/**
 * On two cores a second orchestrator cannot double the rate, so what counts is the orchestrators' CPU per instance:
 * `scale` is what two would do against one if each had cores of its own. Each has the same number of instances in
 * flight: what comes at the same time shares messages and turns.
 */
export const twoOrchestrators: Workload = {
  name: "two-orchestrators",
  what: "CPU of the orchestrators for an instance of W3, one and two of them",
  layouts: "one",
  async run(bench) {
    await using rig = await Rig.start(bench.options, { layout: bench.layout });
    const first = rig.orchestrator?.pid ?? 0;
    const instances = bench.size(4000, 500);
    const one = await measured(rig, { one: first }, instances);
    const second = await rig.startOrchestrator();
    const two = await measured(rig, { one: first, two: second.pid }, instances);
    const scale = (2 * one.cpuUs) / two.cpuUs;
    bench.emit({
      n: instances,
      oneInstancesPerSecond: one.instancesPerSecond,
      twoInstancesPerSecond: two.instancesPerSecond,
      oneCpuUs: one.cpuUs,
      twoCpuUs: two.cpuUs,
      shareOfSecond: two.shareOfSecond,
      scale,
      ...judged(scale, { atLeast: 1.8 }),
    });
  },
};

async function measured(rig: Rig, pids: Record<string, number>, instances: number) {
  const atOnce = width * Object.keys(pids).length;
  // Warms up the orchestrator that has just joined, and lets partitions move before the measurement.
  await shortInstances(rig.client, Math.max(1000, instances / 2), atOnce);
  const meter = new CpuMeter(pids);
  const { instancesPerSecond } = figuresOf(
    await meter.during(() => shortInstances(rig.client, instances, atOnce)),
  );
  const { one = 0, two = 0 } = meter.perUnitUs(instances);
  return { instancesPerSecond, cpuUs: one + two, shareOfSecond: two / (one + two) };
}
