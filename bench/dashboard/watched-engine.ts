/**
 * What open pages cost the engine: W3's load alone, with a gateway, and with a gateway and twenty open pages,
 * in turn and repeatedly, so that other load on the machine affects all three alike. A page is a live
 * connection that a process on this machine reads to the end; drawing would happen on the viewer's machine.
 */

import { type Bus, bucketStream, connectBus, subjects } from "../../shared/bus/index.ts";
import { pickFreePort } from "../../shared/embedded-nats/free-port.ts";
import { silent } from "../../shared/runtime/index.ts";
import { CpuMeter, cpuMsOf } from "../costs/process-cost.ts";
import { Rig } from "../rig.ts";
import type { ServiceProcess } from "../service.ts";
import { percentile } from "../stats.ts";
import { figuresOf, shortInstances } from "../workloads/w3-instances.ts";
import { Pages } from "./pages.ts";

const pageCount = 20;
const ways = ["alone", "gateway", "pages"] as const;
type Way = (typeof ways)[number];

interface Run {
  instancesPerSecond: number;
  /**
   * CPU of server, orchestrator, worker and client for one instance. Other load on the machine hardly changes
   * it.
   */
  engineUs: number;
  /** CPU of the gateway in the same time, for one instance. */
  gatewayUs: number;
  updatesPerSecond: number;
  gatewayShare: number;
  pagesShare: number;
  eventsPerPage: number;
}

export async function watchedEngine(options: { rounds: number; instances: number }) {
  const rig = await Rig.start(
    {
      json: false,
      quick: false,
      only: [],
      layout: "shared",
      sync: "default",
      cpuProf: undefined,
      help: false,
    },
    { layout: "shared", env: { GATEWAY_PORT: String(await pickFreePort()) } },
  );
  const bus = await connectBus({ url: rig.nats.url, name: "bench-counts", announce: silent });
  const runs: Record<Way, Run[]> = { alone: [], gateway: [], pages: [] };
  try {
    await shortInstances(rig.client, options.instances);
    for (let round = 0; round < options.rounds; round++) {
      // Each begins as often as the others: the store grows all the time.
      const order = ways.map((_, index) => ways[(index + round) % ways.length] ?? "alone");
      for (const way of order) runs[way].push(await oneRun(rig, bus, way, options.instances));
    }
  } finally {
    await bus.close();
    await rig.stop();
  }
  const rate = (way: Way) =>
    percentile(
      runs[way].map((run) => run.instancesPerSecond),
      0.5,
    );
  const middle = (way: Way, figure: keyof Run) =>
    percentile(
      runs[way].map((run) => run[figure]),
      0.5,
    );
  return {
    rounds: options.rounds,
    instances: options.instances,
    pages: pageCount,
    aloneInstancesPerSecond: rate("alone"),
    gatewayInstancesPerSecond: rate("gateway"),
    pagesInstancesPerSecond: rate("pages"),
    /** Within a round, so that a slow minute of the machine does not count. */
    slowedByGateway: slowed(runs.alone, runs.gateway),
    slowedByPages: slowed(runs.gateway, runs.pages),
    slowedByBoth: slowed(runs.alone, runs.pages),
    aloneCpuUs: middle("alone", "engineUs"),
    gatewayCpuUs: middle("gateway", "engineUs") + middle("gateway", "gatewayUs"),
    pagesCpuUs: middle("pages", "engineUs") + middle("pages", "gatewayUs"),
    /** How much more CPU the pages cost: the loss of throughput on a machine that is busy with the engine alone. */
    cpuByPages:
      (middle("pages", "engineUs") + middle("pages", "gatewayUs")) /
        (middle("gateway", "engineUs") + middle("gateway", "gatewayUs")) -
      1,
    updatesPerSecond: middle("pages", "updatesPerSecond"),
    eventsPerPage: middle("pages", "eventsPerPage"),
    gatewayCore: middle("gateway", "gatewayShare"),
    gatewayCoreWithPages: middle("pages", "gatewayShare"),
    readersCore: middle("pages", "pagesShare"),
  };
}

async function oneRun(rig: Rig, bus: Bus, way: Way, instances: number): Promise<Run> {
  let gateway: ServiceProcess | undefined;
  let pages: Pages | undefined;
  try {
    if (way !== "alone") gateway = await rig.startService("gateway");
    if (way === "pages") pages = await Pages.open(`http://127.0.0.1:${rig.env.GATEWAY_PORT}`, pageCount);
    // A process that has just started is still being compiled.
    await shortInstances(rig.client, Math.ceil(instances / 3));
    const gatewayCpu = () => (gateway ? (cpuMsOf(gateway.pid) ?? 0) : 0);
    const engine = new CpuMeter(rig.pids);
    const before = { gateway: gatewayCpu(), pages: pages?.cpuMs ?? 0, updates: await updatesIn(bus) };
    const seenBefore = (await pages?.seen())?.events ?? 0;
    const load = await engine.during(() => shortInstances(rig.client, instances));
    const { wallMs } = load;
    const seen = await pages?.seen();
    const events = (seen?.events ?? 0) - seenBefore;
    return {
      instancesPerSecond: figuresOf(load).instancesPerSecond,
      engineUs: Object.values(engine.perUnitUs(instances)).reduce((sum, us) => sum + us, 0),
      gatewayUs: ((gatewayCpu() - before.gateway) / instances) * 1000,
      updatesPerSecond: ((await updatesIn(bus)) - before.updates) / (wallMs / 1000),
      gatewayShare: (gatewayCpu() - before.gateway) / wallMs,
      pagesShare: ((pages?.cpuMs ?? 0) - before.pages) / wallMs,
      eventsPerPage: events / pageCount / (wallMs / 1000),
    };
  } finally {
    await pages?.close();
    await gateway?.end("SIGTERM");
  }
}

/** How often summaries of instances were written so far. */
async function updatesIn(bus: Bus): Promise<number> {
  return (await bus.streamInfo(bucketStream(subjects().bucket("instances"))))?.lastSeq ?? 0;
}

/** The middle of the rounds' losses: 0.05 is five percent slower. */
const slowed = (without: readonly Run[], given: readonly Run[]): number =>
  percentile(
    without.map((run, index) => 1 - (given[index]?.instancesPerSecond ?? 0) / run.instancesPerSecond),
    0.5,
  );
