/** The installation under attack: every member behind a network of its own, and with a clock of its own. */
import { fileURLToPath } from "node:url";
import { connectBus } from "../../shared/bus/index.ts";
import { type Random, silent } from "../../shared/runtime/index.ts";
import { type NatsCluster, startCluster } from "../support/nats/nats-cluster.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";
import { Network, type Weather } from "../support/nats/network.ts";
import { type ServiceName, type ServiceProcess, Stack, until } from "../support/processes/stack.ts";

export interface Member {
  readonly service: ServiceName;
  process: ServiceProcess;
  /** One for each server. */
  readonly networks: readonly Network[];
  clockOffsetMs: number;
}

export const wanted: readonly ServiceName[] = [
  ...(["orchestrator", "orchestrator", "worker", "worker", "worker"] as const),
  ...(["watcher", "watcher"] as const),
];

const app = fileURLToPath(new URL("app.ts", import.meta.url));
const skewedClock = fileURLToPath(new URL("skewed-clock.mjs", import.meta.url));

/**
 * The store can be filled up. What streams with a limit of their own may take counts as taken (dead letters, what work
 * writes, audit: 576 MB for each copy); the rest is for everybody.
 */
const limits = (copies: number): string => `
accounts { A { jetstream { max_store: ${copies * (576 + 96) * 1024 * 1024} }, users: [ { user: a, password: a } ] } }
no_auth_user: a`;

/** A cluster has to choose a leader first. */
const answers = (url: string): Promise<boolean> =>
  connectBus({ url, announce: silent }).then(
    (bus) => bus.close().then(() => true),
    () => false,
  );

export class Fleet implements AsyncDisposable {
  readonly stack: Stack;
  readonly servers: readonly TestNats[];
  readonly cluster: NatsCluster | undefined;
  readonly members: Member[] = [];
  readonly #random: Random;

  private constructor(
    stack: Stack,
    servers: readonly TestNats[],
    cluster: NatsCluster | undefined,
    random: Random,
  ) {
    this.stack = stack;
    this.servers = servers;
    this.cluster = cluster;
    this.#random = random;
  }

  static async start(servers: 1 | 3, random: Random, journal: string): Promise<Fleet> {
    const cluster = servers === 3 ? await startCluster(limits(3)) : undefined;
    const nats = cluster?.servers ?? [await startNats({ extraConfig: limits(1) })];
    await until("JetStream answers", () => answers(nats[0]?.url ?? ""), 60_000);
    const stack = await Stack.start({
      ...{ app, orchestrators: 0, workers: 0, watchers: 0, servers: nats },
      env: {
        HOLDFAST_TEST_JOURNAL: journal,
        LOG_LEVEL: "debug",
        NATS_REPLICAS: String(servers),
        NATS_WAIT: "60s",
        HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "3000",
        WATCHER_LEASE_TTL: "3s",
        WATCHER_GRACE: "3s",
        WATCHER_RECONCILE_EVERY: "2s",
        WATCHER_DEAD_AFTER: "5s",
        WATCHER_SWEEP_EVERY: "2s",
        ARCHIVE_AFTER: "5s",
        WORKER_ACK_WAIT: "2s",
        // A call may meet more deaths here than one that is poison meets anywhere else.
        WORKER_MAX_DELIVERIES: "50",
      },
    });
    const fleet = new Fleet(stack, nats, cluster, random);
    try {
      await Promise.all(wanted.map((service) => fleet.#add(service)));
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
    return fleet;
  }

  async #add(service: ServiceName): Promise<void> {
    const networks = await Promise.all(this.servers.map(({ port }) => Network.start(port, this.#random)));
    this.members.push({ service, networks, ...(await this.#run(service, networks)) });
  }

  /** In place of one that is gone; its clock is another. */
  async replace(member: Member): Promise<void> {
    Object.assign(member, await this.#run(member.service, member.networks));
  }

  /** F30: most clocks are right; some are off by seconds, or by an hour. */
  async #run(service: ServiceName, networks: readonly Network[]) {
    const offsets = [0, 0, 0, 4_000, -4_000, 3_600_000, -3_600_000];
    const clockOffsetMs = offsets[Math.floor(this.#random.next() * offsets.length)] ?? 0;
    const env = {
      NATS_URL: networks.map(({ url }) => url).join(","),
      HOLDFAST_TEST_CLOCK_OFFSET_MS: String(clockOffsetMs),
      NODE_OPTIONS: `--import ${skewedClock}`,
    };
    return { process: await this.stack.run(service, env), clockOffsetMs };
  }

  weather(member: Member, weather: Weather): void {
    for (const network of member.networks) network.weather = weather;
  }

  /** Everything is as it should be from now on. */
  async heal(): Promise<void> {
    for (const server of this.servers) {
      server.resume();
      this.cluster?.join(server);
    }
    for (const member of this.members) {
      member.process.resume();
      this.weather(member, { kind: "fair" });
      if (member.process.gone) await this.replace(member);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.servers) server.resume();
    await this.stack[Symbol.asyncDispose]();
    for (const { networks } of this.members)
      for (const network of networks) await network[Symbol.asyncDispose]();
  }
}
