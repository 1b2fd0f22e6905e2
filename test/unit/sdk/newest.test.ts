import { expect, it } from "vitest";
import { type Bus, encode, Payloads, subjects } from "../../../shared/bus/index.ts";
import { silent, systemClock, systemRandom } from "../../../shared/runtime/index.ts";
import { Instances, type ListOptions } from "../../../shared/sdk/client/instances.ts";
import { Newest } from "../../../shared/sdk/instance/newest.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

it("keeps the newest of many, and never many more than asked for", () => {
  const newest = new Newest<number>(10, (a, b) => b - a);
  for (let i = 0; i < 100_000; i++) {
    const n = (i * 7919) % 100_000;
    newest.put(`i${n}`, n);
  }
  expect(newest.sorted()).toEqual([
    99_999, 99_998, 99_997, 99_996, 99_995, 99_994, 99_993, 99_992, 99_991, 99_990,
  ]);
});

type Row = [id: string, status: string, startedAt: number, name?: string, writtenAt?: number];

const names = subjects();
const bucket = names.bucket("instances");

/** A read model whose entries were written in this order, at their start if not said otherwise; `read` counts. */
async function readModel(rows: Row[], meanwhile: Row[] = []) {
  const broker = new MemoryBroker();
  const bus = broker.connect();
  const [subject] = [`$KV.${bucket}.>`];
  await bus.ensureStream({
    name: `KV_${bucket}`,
    subjects: [subject],
    retention: "limits",
    maxMsgsPerSubject: 1,
  });
  const write = async ([instanceId, status, startedAt, name = "a", writtenAt = startedAt]: Row) => {
    const summary = {
      v: 1,
      instanceId,
      name,
      status,
      execution: 1,
      events: 1,
      startedAt,
      updatedAt: writtenAt,
    };
    await bus.publish(`$KV.${bucket}.${instanceId}`, encode(summary));
  };
  for (const row of rows) await write(row);
  const read = { messages: 0 };
  const counted: Partial<Bus> = {
    streamInfo: (stream) => bus.streamInfo(stream),
    read: async (...asked) => {
      const found = (await bus.read(...asked))?.map((message) => ({
        ...message,
        at: writtenAt(message.body),
      }));
      read.messages += found?.length ?? 0;
      for (const row of meanwhile.splice(0)) await write(row);
      return found;
    },
  };
  const runtime = { clock: systemClock, random: systemRandom, announce: silent };
  const instances = new Instances(counted as Bus, names, new Payloads(bus.blobs), runtime);
  const list = async (options: ListOptions) =>
    (await instances.list(options)).map((view) => `${view.instanceId} ${view.status}`);
  return { list, read };
}

const writtenAt = (body: Uint8Array): number => JSON.parse(Buffer.from(body).toString()).updatedAt;

it("lists an instance once, as it is at the end of the look", async () => {
  const rows = (): Row[] => [
    ["one", "running", 1],
    ["two", "running", 2],
  ];
  const listed = async (options: ListOptions) =>
    (await readModel(rows(), [["one", "completed", 1]])).list(options);
  expect(await listed({})).toEqual(["two running", "one completed"]);
  expect(await listed({ status: "running" })).toEqual(["two running"]);
  expect(await listed({ status: ["completed", "failed"] })).toEqual(["one completed"]);
});

it("honours every filter together, and the limit last", async () => {
  const rows = Array.from(
    { length: 5000 },
    (_, i): Row => [`i${i}`, i % 2 ? "running" : "failed", i, i % 3 ? "a" : "b"],
  );
  const { list } = await readModel(rows);
  expect(await list({ status: "running", name: "b", prefix: "i4", limit: 2 })).toEqual([
    "i4995 running",
    "i4989 running",
  ]);
  expect(await list({})).toHaveLength(100);
  expect(await list({ limit: Number.POSITIVE_INFINITY })).toHaveLength(5000);
});

it("reads no more entries for the newest than it needs, however many there are", async () => {
  // One instance a second, and those that ended late were written anew behind the others.
  const rows = Array.from({ length: 20_000 }, (_, i): Row => [`i${i}`, "completed", i * 1000]);
  const { list, read } = await readModel([...rows, ["i3", "failed", 3000]]);
  expect(await list({ limit: 3 })).toEqual(["i19999 completed", "i19998 completed", "i19997 completed"]);
  expect(read.messages).toBeLessThan(2000);
});

it("finds the newest also if older ones ended behind it", async () => {
  const older = Array.from({ length: 3000 }, (_, i): Row => [`o${i}`, "completed", i, "a", 90_000 + i]);
  const { list } = await readModel([["newest", "running", 50_000], ...older]);
  expect(await list({ limit: 2 })).toEqual(["newest running", "o2999 completed"]);
});
