/** The options of the command line. */
import { parseArgs } from "node:util";
import { parseDuration } from "../shared/runtime/index.ts";

export type Layout = "per-instance" | "shared";
export const layouts: readonly Layout[] = ["per-instance", "shared"];

export interface BenchOptions {
  json: boolean;
  /** Small sizes: everything within a minute. */
  quick: boolean;
  /** Empty: all. Lower case. */
  only: readonly string[];
  /** Undefined: both, where the layout matters. */
  layout: Layout | undefined;
  /** `always`: the server flushes every write before it answers, as in production. */
  sync: "always" | "default";
  /** The folder into which the orchestrator writes a CPU profile. */
  cpuProf: string | undefined;
  /** True to compare with other engines instead of the floor. */
  peers?: boolean;
  /** How many finished instances `growth` stores. Undefined: its own levels. */
  stored?: number | undefined;
  /** How long to run the same load, and nothing else. */
  soakMs?: number | undefined;
  help: boolean;
}

export const usage = `npm run bench -- [options]

  --json                          one JSON line per workload on stdout, nothing else
  --quick                         small sizes, at most 60 s in all
  --only W1,loss                  these workloads alone
  --layout per-instance|shared    one history layout (otherwise both, where it matters)
  --sync always|default           flush every write to disk before it is acknowledged (default: every two minutes)
  --peers                         beside Restate, DBOS and BullMQ: a table, and docs/images/peers.svg (bench/peers);
                                  with --sync always each of them flushes every write, and there is no plot
  --stored 1000000                so many finished instances for the workload growth
  --soak 60m                      one load for so long: memory and latencies, minute by minute
  --cpu-prof <folder>             orchestrators and workers leave CPU profiles there
`;

export function readOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      json: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      layout: { type: "string" },
      sync: { type: "string", default: "default" },
      "cpu-prof": { type: "string" },
      peers: { type: "boolean", default: false },
      stored: { type: "string" },
      soak: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const layout = layouts.find((known) => known === values.layout);
  if (values.layout !== undefined && layout === undefined) {
    throw new Error(`--layout ${values.layout}: must be ${layouts.join(" or ")}`);
  }
  const { sync } = values;
  if (sync !== "always" && sync !== "default") throw new Error(`--sync ${sync}: must be always or default`);
  const only = values.only
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  const { json, quick, help, peers, soak } = values;
  const soakMs = soak === undefined ? undefined : parseDuration(soak, "--soak");
  const stored = values.stored === undefined ? undefined : Number(values.stored);
  if (stored !== undefined && !(Number.isInteger(stored) && stored > 0)) {
    throw new Error(`--stored ${values.stored}: must be a whole number above 0`);
  }
  return { json, quick, only, layout, sync, cpuProf: values["cpu-prof"], peers, stored, soakMs, help };
}
