/**
 * What roles and capabilities cost: `npx tsx bench/costs/security-cost.ts [rounds]`. Two installations,
 * everything on and everything off, take turns in short rounds of W1 (steps in sequence) and W3 (instances of
 * 3 steps, 64 in flight), so that other load on the machine affects both alike. Printed: medians over the
 * rounds, of wall time and of the CPU of all processes, and the medians of on/off of each pair of rounds.
 */
import { loadavg } from "node:os";
import { readOptions } from "../options.ts";
import { Rig } from "../rig.ts";
import { intervals, percentile } from "../stats.ts";
import { shortInstances } from "../workloads/w3-instances.ts";
import { CpuMeter, type Pids } from "./process-cost.ts";

const rounds = Number(process.argv[2] ?? 12);
const stepsEach = 250;
const instancesEach = 250;

interface Figures {
  wallUs: number;
  cpuUs: number;
  byProcess: Record<string, number>;
}

const median = (values: readonly number[]): number => percentile(values, 0.5);

async function measured(pids: Pids, units: number, run: () => Promise<number>): Promise<Figures> {
  const meter = new CpuMeter(pids);
  const wallUs = await meter.during(run);
  const byProcess = meter.perUnitUs(units);
  return { wallUs, byProcess, cpuUs: Object.values(byProcess).reduce((sum, one) => sum + one, 0) };
}

const workloads: Record<string, (rig: Rig) => Promise<Figures>> = {
  "W1, a step": (rig) =>
    measured(rig.pids, stepsEach, async () => {
      const handle = await rig.client.start("stamped-steps", { n: stepsEach });
      return 1000 * median(intervals((await handle.result()) as number[]));
    }),
  "W3, an instance": (rig) =>
    measured(
      rig.pids,
      instancesEach,
      async () => (1000 * (await shortInstances(rig.client, instancesEach)).wallMs) / instancesEach,
    ),
};

const open = (roles: boolean) => Rig.start(readOptions([]), { layout: "shared", roles });
const rigs = { off: await open(false), on: await open(true) };
try {
  const load = loadavg()[0]?.toFixed(1);
  for (const [name, run] of Object.entries(workloads)) {
    const seen: Record<keyof typeof rigs, Figures[]> = { off: [], on: [] };
    for (let warm = 0; warm < 3; warm++) for (const rig of Object.values(rigs)) await run(rig);
    for (let round = 0; round < rounds; round++)
      for (const which of round % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const))
        seen[which].push(await run(rigs[which]));
    const pairs = (of: "wallUs" | "cpuUs") =>
      seen.off.map((off, index) => (seen.on[index]?.[of] ?? Number.NaN) / off[of]);
    const shown = (of: "wallUs" | "cpuUs") => {
      const [off, on] = [median(seen.off.map((one) => one[of])), median(seen.on.map((one) => one[of]))];
      const ratios = pairs(of);
      const quartiles = [0.25, 0.75].map((share) => percentile(ratios, share).toFixed(3)).join("–");
      return `off ${off.toFixed(0)} µs, on ${on.toFixed(0)} µs; on/off by pairs ${median(ratios).toFixed(3)} (${quartiles})`;
    };
    const part = (which: keyof typeof rigs) =>
      Object.keys(seen.off[0]?.byProcess ?? {})
        .map(
          (process) =>
            `${process} ${median(seen[which].map((one) => one.byProcess[process] ?? 0)).toFixed(0)}`,
        )
        .join(", ");
    console.log(
      `${name} (${rounds} rounds, load ${load})\n  wall ${shown("wallUs")}\n  CPU  ${shown("cpuUs")}`,
    );
    console.log(`  CPU by process, off: ${part("off")}; on: ${part("on")}`);
  }
} finally {
  await Rig.stopAll();
}
