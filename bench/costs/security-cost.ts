/**
 * What roles and capabilities cost: `npx tsx bench/costs/security-cost.ts [rounds]`. Four installations, with nothing,
 * one of both or everything on, take turns in short rounds of W1 (steps in sequence) and W3 (instances of
 * 3 steps, 64 in flight), so that other load on the machine affects all alike. Printed: medians over the
 * rounds, of wall time and of the CPU of all processes, the bound of the calmest tenth of them, and what each round was to that with nothing on.
 */
import { loadavg } from "node:os";
import { readOptions } from "../options.ts";
import { Rig } from "../rig.ts";
import type { Safety } from "../roles.ts";
import { intervals, percentile } from "../stats.ts";
import { shortInstances } from "../workloads/w3-instances.ts";
import { CpuMeter } from "./process-cost.ts";

const rounds = Number(process.argv[2] ?? 12);
const stepsEach = 250;
const instancesEach = 250;
const kinds = ["off", "roles", "capabilities", "everything"] as const satisfies readonly Safety[];

/** Microseconds a unit of work. */
interface Figures {
  wall: number;
  cpu: number;
  byProcess: Record<string, number>;
}

const median = (values: readonly number[]): number => percentile(values, 0.5);

async function measured({ pids }: Rig, units: number, run: () => Promise<number>): Promise<Figures> {
  const meter = new CpuMeter(pids);
  const wall = await meter.during(run);
  const byProcess = meter.perUnitUs(units);
  return { wall, byProcess, cpu: Object.values(byProcess).reduce((sum, one) => sum + one, 0) };
}

const workloads: Record<string, (rig: Rig) => Promise<Figures>> = {
  "W1, a step": (rig) =>
    measured(rig, stepsEach, async () => {
      const handle = await rig.client.start("stamped-steps", { n: stepsEach });
      return 1000 * median(intervals((await handle.result()) as number[]));
    }),
  "W3, an instance": (rig) =>
    measured(
      rig,
      instancesEach,
      async () => (1000 * (await shortInstances(rig.client, instancesEach)).wallMs) / instancesEach,
    ),
};

/** Each kind is as often first as last, and as often before as behind each other. */
function inTurn(round: number): Safety[] {
  const first = Math.floor(round / 2) % kinds.length;
  const order = [...kinds.slice(first), ...kinds.slice(0, first)];
  return round % 2 === 0 ? order : order.reverse();
}

const rigs = new Map<Safety, Rig>();
try {
  for (const safety of kinds)
    rigs.set(safety, await Rig.start(readOptions([]), { layout: "shared", safety }));
  for (const [name, run] of Object.entries(workloads)) {
    for (let warm = 0; warm < 3; warm++) for (const rig of rigs.values()) await run(rig);
    const seen = new Map<Safety, Figures[]>(kinds.map((kind) => [kind, []]));
    for (let round = 0; round < rounds; round++)
      for (const kind of inTurn(round)) {
        const rig = rigs.get(kind);
        if (rig) seen.get(kind)?.push(await run(rig));
      }
    const load = loadavg()[0]?.toFixed(1);
    console.log(`${name} (${rounds} rounds, load ${load})`);
    for (const [kind, all] of seen) console.log(`  ${kind}: ${shown(all, seen.get("off") ?? [])}`);
  }
} finally {
  await Rig.stopAll();
}

function shown(all: readonly Figures[], off: readonly Figures[]): string {
  const line = (of: "wall" | "cpu") => {
    const ratios = all.map((one, round) => one[of] / (off[round]?.[of] ?? Number.NaN));
    const quartiles = [0.25, 0.75].map((share) => percentile(ratios, share).toFixed(3)).join("–");
    const [calm, middle] = [0.1, 0.5].map((share) =>
      percentile(
        all.map((one) => one[of]),
        share,
      ).toFixed(0),
    );
    return `${of} ${middle} µs (calmest tenth ${calm}), of off ${median(ratios).toFixed(3)} (${quartiles})`;
  };
  const processes = Object.keys(all[0]?.byProcess ?? {}).map(
    (process) => `${process} ${median(all.map((one) => one.byProcess[process] ?? 0)).toFixed(0)}`,
  );
  return `${line("wall")}; ${line("cpu")}: ${processes.join(", ")}`;
}
