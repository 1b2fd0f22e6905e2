/**
 * Test kit: three real servers that are one cluster, on loopback. Each reaches each other one through a network of its own,
 * so that a server can be cut off from the others while its clients still reach it.
 */
import { pickFreePort } from "../../../shared/embedded-nats/free-port.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";
import { startNats, type TestNats } from "./nats-server.ts";
import { Network } from "./network.ts";

export interface NatsCluster {
  readonly urls: string[];
  readonly servers: readonly TestNats[];
  /** Neither of the others hears from this server, nor it from them, until it is joined again. */
  cutOff(server: TestNats): void;
  join(server: TestNats): void;
  stop(): Promise<void>;
}

/** Clients keep to the addresses they were given: they may lead through a network that a test makes bad. */
export async function startCluster(extraConfig = ""): Promise<NatsCluster> {
  const ports = [await pickFreePort(), await pickFreePort(), await pickFreePort()];
  const ways = await Promise.all(
    ports.flatMap((from) =>
      ports
        .filter((to) => to !== from)
        .map(async (to) => ({ from, to, network: await Network.start(to, seededRandom(to)) })),
    ),
  );
  const servers = await Promise.all(
    ports.map((port) => {
      const routes = ways.filter(({ from }) => from === port).map(({ network }) => network.url);
      // The address that a server tells of itself leads nowhere: all go by the networks.
      const cluster = `name: test, listen: "127.0.0.1:${port}", advertise: "127.0.0.1:1", no_advertise: true`;
      return startNats({
        serverName: `holdfast-${port}`,
        extraConfig: `cluster { ${cluster}, routes: [${routes.join(", ")}] }${extraConfig}`,
      });
    }),
  );
  const around = (server: TestNats) => {
    const port = ports[servers.indexOf(server)];
    return ways.filter(({ from, to }) => from === port || to === port);
  };
  return {
    urls: servers.map(({ url }) => url),
    servers,
    cutOff: (server) => {
      for (const { network } of around(server)) network.weather = { kind: "cut" };
    },
    join: (server) => {
      for (const { network } of around(server)) network.weather = { kind: "fair" };
    },
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
      for (const { network } of ways) await network[Symbol.asyncDispose]();
    },
  };
}
