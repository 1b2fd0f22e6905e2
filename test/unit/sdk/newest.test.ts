import { expect, it } from "vitest";
import { type Bus, encode, Payloads, type StoredMessage, subjects } from "../../../shared/bus/index.ts";
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
  expect(newest.take()).toEqual([
    99_999, 99_998, 99_997, 99_996, 99_995, 99_994, 99_993, 99_992, 99_991, 99_990,
  ]);
});

/** A read model that changes while it is read: keys come again. */
function list(
  rows: [id: string, status: string, startedAt: number, name?: string][],
  options: ListOptions,
): Promise<string[]> {
  const names = subjects();
  const bus = new MemoryBroker().connect();
  const changing: Partial<Bus> = {
    async *lastPerSubject() {
      for (const [seq, [instanceId, status, startedAt, name = "a"]] of rows.entries()) {
        const summary = { v: 1, instanceId, name, status, execution: 1, events: 1, startedAt, updatedAt: 1 };
        const subject = `$KV.${names.bucket("instances")}.${instanceId}`;
        yield { subject, seq, at: 1, headers: {}, body: encode(summary) } satisfies StoredMessage;
      }
    },
  };
  const runtime = { clock: systemClock, random: systemRandom, announce: silent };
  const instances = new Instances(changing as Bus, names, new Payloads(bus.blobs), runtime);
  return instances.list(options).then((found) => found.map((view) => `${view.instanceId} ${view.status}`));
}

it("lists an instance once, as it is at the end of the look", async () => {
  const rows: Parameters<typeof list>[0] = [
    ["one", "running", 1],
    ["two", "running", 2],
    ["one", "completed", 1],
  ];
  expect(await list(rows, {})).toEqual(["two running", "one completed"]);
  expect(await list(rows, { status: "running" })).toEqual(["two running"]);
  expect(await list(rows, { status: ["completed", "failed"] })).toEqual(["one completed"]);
});

it("honours every filter together, and the limit last", async () => {
  const rows = Array.from({ length: 5000 }, (_, i): [string, string, number, string] => [
    `i${i}`,
    i % 2 ? "running" : "failed",
    i,
    i % 3 ? "a" : "b",
  ]);
  const found = await list(rows, { status: "running", name: "b", prefix: "i4", limit: 2 });
  expect(found).toEqual(["i4995 running", "i4989 running"]);
  expect(await list(rows, {})).toHaveLength(100);
});
