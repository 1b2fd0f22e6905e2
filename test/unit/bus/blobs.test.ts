import { expect, test } from "vitest";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

test("VALUE-2: chunks that overtake each other on their way are stored again in their order", async () => {
  const bytes = Uint8Array.from({ length: 600_000 }, (_, i) => i % 251);
  for (let seed = 1; seed <= 20; seed++) {
    const clock = new SimulatedClock();
    const { blobs } = new MemoryBroker({ clock, seed, faults: { latencyMs: [0, 4] } }).connect();
    await clock.run(blobs.put("a/b", bytes));
    const read = await clock.run(blobs.get("a/b"));
    expect(read && Buffer.compare(read, bytes), `seed ${seed}`).toBe(0);
  }
});
