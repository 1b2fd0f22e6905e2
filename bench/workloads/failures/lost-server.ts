/** One of three servers dies for good: how long starts take until its streams have new leaders, and after that. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Bus, connectBus, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { type NatsCluster, startCluster } from "../../../test/support/nats/nats-cluster.ts";
import type { Layout } from "../../options.ts";
import { judged } from "../../report.ts";
import { type ServiceName, ServiceProcess } from "../../service.ts";
import { percentile } from "../../stats.ts";
import type { Workload } from "../../workload.ts";

const startEveryMs = 500;
const lookEveryMs = 20;
const clusterReadyMs = 60_000;
const app = fileURLToPath(new URL("../../app/app.ts", import.meta.url));
const { inboxStream } = subjects();

export const lostServer: Workload = {
  name: "lost-server",
  what: "three servers, the leader of the inbox killed: from start to end of an instance of two activities",
  layouts: "both",
  async run(bench) {
    const cluster = await startCluster();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-lost-server-"));
    const services: ServiceProcess[] = [];
    let client: Client | undefined;
    try {
      await untilReady(cluster);
      for (const name of ["orchestrator", "worker", "watcher"] as const)
        services.push(await started(name, cluster, bench.layout, folder));
      client = await Client.connect({ url: cluster.urls, name: "bench" });
      const before = await starts(client, bench.size(20, 5));
      const { election } = await killLeader(cluster);
      const during = await starts(client, 20);
      const electionMs = await election;
      const away = await starts(client, bench.size(40, 10));
      const duringWorstMs = Math.max(...during);
      const awayWorstMs = Math.max(...away);
      bench.emit({
        electionMs,
        beforeP50Ms: percentile(before, 0.5),
        duringP50Ms: percentile(during, 0.5),
        duringWorstMs,
        awayP50Ms: percentile(away, 0.5),
        awayWorstMs,
        // 1: twice the election while there is no leader, or a second while the server stays away.
        ...judged(Math.max(duringWorstMs / (2 * electionMs), awayWorstMs / 1_000), { atMost: 1 }),
      });
    } finally {
      await client?.close();
      await Promise.all(services.map((service) => service.end("SIGTERM")));
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/**
 * Starts instances at a fixed rate, whether or not earlier ones have ended: how long each took to its end.
 */
async function starts(client: Client, count: number): Promise<number[]> {
  const running: Promise<number>[] = [];
  for (let nth = 0; nth < count; nth++) {
    const at = performance.now();
    const one = client.start("steps", { n: 2 }).then(async (handle) => {
      await handle.result();
      return performance.now() - at;
    });
    one.catch(() => undefined); // `Promise.all` below reports it
    running.push(one);
    await delay(startEveryMs);
  }
  return Promise.all(running);
}

/** Kills the server that leads the inbox; resolves with the time until the inbox has another leader. */
async function killLeader(cluster: NatsCluster): Promise<{ election: Promise<number> }> {
  const buses = await Promise.all(cluster.urls.map((url) => connectBus({ url, announce: silent })));
  const leader = (await buses[0]?.streamInfo(inboxStream))?.leader;
  const of = buses.findIndex((bus) => bus.serverName() === leader);
  const survivor = buses.find((_bus, index) => index !== of);
  if (of < 0 || !survivor) throw new Error(`the inbox is led by ${leader}`);
  await Promise.all(buses.filter((bus) => bus !== survivor).map((bus) => bus.close()));
  await cluster.servers[of]?.kill();
  const killedAt = performance.now();
  const election = elected(survivor, leader).then((at) => at - killedAt);
  return { election: election.finally(() => survivor.close()) };
}

/** Asks often without waiting for answers: questions to the dead server are answered late. */
async function elected(bus: Bus, dead: string | undefined): Promise<number> {
  let at: number | undefined;
  const look = async () => {
    const leader = (await bus.streamInfo(inboxStream).catch(() => undefined))?.leader;
    if (leader !== undefined && leader !== dead) at ??= performance.now();
  };
  while (at === undefined) {
    void look();
    await delay(lookEveryMs);
  }
  return at;
}

async function untilReady({ urls }: NatsCluster): Promise<void> {
  const bus = await connectBus({ url: urls, announce: silent });
  const until = performance.now() + clusterReadyMs;
  try {
    // Asked of the leader of all servers.
    while (!(await bus.account().catch(() => undefined))) {
      if (performance.now() > until) throw new Error("the three servers have no leader");
      await delay(100);
    }
  } finally {
    await bus.close();
  }
}

const started = (service: ServiceName, { urls }: NatsCluster, layout: Layout, folder: string) =>
  ServiceProcess.start({
    service,
    logFile: join(folder, `${service}.log`),
    env: {
      NATS_URL: urls.join(","),
      NATS_REPLICAS: "3",
      HISTORY_LAYOUT: layout,
      HOLDFAST_APP: app,
      WORKER_NODE_ID: "bench",
    },
  });
