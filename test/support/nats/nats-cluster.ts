/** Test kit: three real servers that are one cluster, on loopback. */
import { pickFreePort } from "../../../shared/embedded-nats/free-port.ts";
import { startNats, type TestNats } from "./nats-server.ts";

export interface NatsCluster {
  readonly urls: string[];
  readonly servers: readonly TestNats[];
  stop(): Promise<void>;
}

/** Clients keep to the addresses they were given: they may lead through a network that a test makes bad. */
export async function startCluster(extraConfig = ""): Promise<NatsCluster> {
  const ports = [await pickFreePort(), await pickFreePort(), await pickFreePort()];
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(", ");
  const servers = await Promise.all(
    ports.map((port) =>
      startNats({
        serverName: `holdfast-${port}`,
        extraConfig: `cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}], no_advertise: true }${extraConfig}`,
      }),
    ),
  );
  return {
    urls: servers.map(({ url }) => url),
    servers,
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
