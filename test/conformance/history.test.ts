import { connectBus } from "../../shared/bus/index.ts";
import { subjects } from "../../shared/bus/subjects.ts";
import { silent } from "../../shared/runtime/index.ts";
import { MemoryBroker } from "../../shared/testing/memory/index.ts";
import { startNats } from "../support/nats/nats-server.ts";
import { type HistorySuiteBus, historySuite } from "./history.ts";

async function real(): Promise<HistorySuiteBus> {
  const nats = await startNats();
  const bus = await connectBus({ url: nats.url, blobBucket: subjects().blobBucket, announce: silent });
  return {
    bus,
    stop: async () => {
      await bus.close();
      await nats.stop();
    },
  };
}

const twin = async (): Promise<HistorySuiteBus> => {
  const bus = new MemoryBroker({ seed: 3 }).connect();
  return { bus, stop: () => bus.close() };
};

historySuite("the real server", "per-instance", real);
historySuite("the real server", "shared", real);
historySuite("the twin", "per-instance", twin);
historySuite("the twin", "shared", twin);
