import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../shared/sdk/index.ts";
import { CpuMeter } from "../costs/process-cost.ts";
import { judged } from "../report.ts";
import { Rig } from "../rig.ts";
import type { Workload } from "../workload.ts";
import { runInstance, shortInstances } from "./w3-instances.ts";

/**
 * On two cores a second orchestrator cannot double the rate, so what counts is the orchestrators' CPU per instance:
 * `scale` is what two would do against one if each had cores of its own. Each gets the same number of instances a
 * second, fewer than the machine can do: a busier process takes more messages at a time, which makes each cheaper.
 */
export const twoOrchestrators: Workload = {
  name: "two-orchestrators",
  what: "CPU of the orchestrators for an instance of W3, one and two of them at the same rate for each",
  layouts: "one",
  async run(bench) {
    await using rig = await Rig.start(bench.options, { layout: bench.layout });
    const first = rig.orchestrator?.pid ?? 0;
    const seconds = bench.size(10, 3);
    await shortInstances(rig.client, bench.size(8_000, 1_000));
    const one = await measured(rig, { one: first }, seconds);
    const second = await rig.startOrchestrator();
    await shortInstances(rig.client, bench.size(8_000, 1_000));
    const two = await measured(rig, { one: first, two: second.pid }, seconds);
    const again = await measured(rig, { one: first, two: second.pid }, seconds);
    await second.end("SIGTERM");
    const oneAgain = await measured(rig, { one: first }, seconds);
    const oneCpuUs = (one.cpuUs + oneAgain.cpuUs) / 2;
    const twoCpuUs = (two.cpuUs + again.cpuUs) / 2;
    const scale = (2 * oneCpuUs) / twoCpuUs;
    bench.emit({
      perSecondEach: rate,
      oneInstancesPerSecond: one.instancesPerSecond,
      twoInstancesPerSecond: two.instancesPerSecond,
      oneCpuUs,
      twoCpuUs,
      eachCpuUs: [one, two, again, oneAgain].map(({ cpuUs }) => Math.round(cpuUs)).join(", "),
      shareOfSecond: again.shareOfSecond,
      scale,
      ...judged(scale, { atLeast: 1.8 }),
    });
  },
};

const rate = 600;

async function measured(rig: Rig, pids: Record<string, number>, seconds: number) {
  const perSecond = rate * Object.keys(pids).length;
  // Warms up the orchestrator that has just joined, and lets partitions move before the measurement.
  await paced(rig.client, perSecond, 3);
  const meter = new CpuMeter(pids);
  const ms = await meter.during(() => paced(rig.client, perSecond, seconds));
  const { one = 0, two = 0 } = meter.perUnitUs(perSecond * seconds);
  return {
    instancesPerSecond: (perSecond * seconds * 1000) / ms,
    cpuUs: one + two,
    shareOfSecond: two / (one + two),
  };
}

/**
 * Starts `perSecond` instances a second, however many still run, and waits for all of them. Returns how many
 * milliseconds it took.
 */
async function paced(client: Client, perSecond: number, seconds: number): Promise<number> {
  const began = performance.now();
  const running: Promise<unknown>[] = [];
  while (running.length < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, ((performance.now() - began) / 1000) * perSecond);
    while (running.length < due) running.push(runInstance(client));
    await delay(1);
  }
  await Promise.all(running);
  return performance.now() - began;
}
