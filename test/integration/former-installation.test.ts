/** Streams as version 0.1.0 made them: the server lets no stream schedule and have a source, so they keep their layout. */
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  type Bus,
  connectBus,
  ensureTopology,
  installedNames,
  subjects,
  topology,
} from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import { Client } from "../../shared/sdk/index.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";

const options = { partitions: 2, historyShards: 1, replicas: 1 };
const names = subjects();
let nats: TestNats;
let bus: Bus;

beforeAll(async () => {
  nats = await startNats();
  bus = await connectBus({ url: nats.url, announce: silent });
  for (const spec of topology(subjects("", { former: true }), options)) await bus.ensureStream(spec);
});
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
});

it("an installation made before 0.2 is taken as it is, and its timers go into the inbox", async () => {
  await ensureTopology(bus, names, options);
  const former = await installedNames(bus, names);
  expect(former.isFormer).toBe(true);
  expect(await bus.streamInfo(names.timersStream), "no stream of its own for timers").toBeUndefined();
  const client = new Client({ bus, names });
  await client.start("later", undefined, { id: "delayed", delay: "1h" });
  const stored = await bus.read(former.inboxStream, former.delayedStart("delayed"));
  expect(stored?.map(({ headers }) => headers["Nats-Schedule-Target"])).toEqual([
    names.start("delayed", "later"),
  ]);
});

it("a new installation has its timers apart", async () => {
  const own = subjects("new");
  await ensureTopology(bus, own, options);
  expect((await installedNames(bus, own)).isFormer).toBe(false);
  expect(await bus.streamInfo(own.timersStream)).toBeDefined();
});
