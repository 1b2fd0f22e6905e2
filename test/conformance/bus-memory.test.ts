import { sleep } from "../../shared/runtime/index.ts";
import { freeRunning, SimulatedClock } from "../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../shared/testing/memory/index.ts";
import { busConformance } from "./bus.ts";

busConformance("the twin", async () => {
  const clock = new SimulatedClock();
  const time = freeRunning(clock);
  const broker = new MemoryBroker({ clock, seed: 7 });
  return {
    clock,
    connect: async () => broker.connect(),
    crash: async (downMs) => {
      broker.stop();
      await sleep(clock, downMs);
      broker.start();
    },
    close: async () => time.stop(),
  };
});
