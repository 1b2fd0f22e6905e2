/** Which layout an installation has is read from its inbox, and what was deleted by mistake is made again. */
import { beforeEach, expect, it } from "vitest";
import {
  bucketStream,
  checkTopology,
  ensureTopology,
  installedNames,
  subjects,
  topology,
} from "../../../shared/bus/index.ts";
import { freeRunning, SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, type MemoryBus } from "../../../shared/testing/memory/index.ts";

const options = { partitions: 2, historyShards: 1, replicas: 1 };
const names = subjects("p");
const former = subjects("p", { former: true });
let bus: MemoryBus;
beforeEach(() => {
  const clock = new SimulatedClock();
  const time = freeRunning(clock);
  bus = new MemoryBroker({ clock, seed: 1 }).connect();
  return () => time.stop();
});

const isThere = async (stream: string) => (await bus.streamInfo(stream)) !== undefined;

it.each([
  [[bucketStream(names.bucket("engine"))]],
  [[bucketStream(names.bucket("engine")), names.timersStream]],
])("an installation without %j is not taken for one made before 0.2", async (deleted) => {
  await ensureTopology(bus, names, options);
  for (const stream of deleted) await bus.deleteStream(stream);
  expect((await installedNames(bus, names)).isFormer).toBe(false);
  await expect(checkTopology(bus, names, options)).rejects.toThrow(/KV_p_engine/);
  await ensureTopology(bus, names, options);
  for (const stream of deleted) expect(await isThere(stream), stream).toBe(true);
  await checkTopology(bus, names, options);
});

it("an installation made before 0.2 keeps its layout", async () => {
  for (const spec of topology(former, options)) await bus.ensureStream(spec);
  await ensureTopology(bus, names, options);
  expect((await installedNames(bus, names)).isFormer).toBe(true);
  expect(await isThere(names.timersStream)).toBe(false);
  expect(await isThere(bucketStream(names.bucket("engine")))).toBe(false);
});
