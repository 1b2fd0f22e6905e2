import { type Bus, connectBus } from "../../shared/bus/index.ts";
import { silent, sleep, systemClock } from "../../shared/runtime/index.ts";
import { startNats } from "../support/nats/nats-server.ts";
import { busConformance } from "./bus.ts";

busConformance("NATS", async () => {
  const server = await startNats();
  const clients: Bus[] = [];
  return {
    clock: systemClock,
    connect: async () => {
      const bus = await connectBus({ url: server.url, announce: silent });
      clients.push(bus);
      return bus;
    },
    crash: async (downMs) => {
      await server.kill();
      await sleep(systemClock, downMs);
      await server.restart();
    },
    close: async () => {
      await Promise.all(clients.map((bus) => bus.close()));
      await server.stop();
    },
  };
});
