/** An account that allows fewer streams than we would make: what does not fit shares, and nothing waits for room. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Commit } from "../../schemas/index.ts";
import { type Bus, connectBus, ensureTopology, subjects, topology } from "../../shared/bus/index.ts";
import { HistoryStore, type Position } from "../../shared/history/index.ts";
import { type Happening, silent, systemRuntime } from "../../shared/runtime/index.ts";
import { MemoryBroker } from "../../shared/testing/memory/index.ts";
import { startNats } from "../support/nats/nats-server.ts";
import { bytes, limits } from "./rig.ts";

const names = subjects();
const options = { partitions: 1, historyShards: 2, replicas: 1 };
const fixed = topology(names, options).length;
/** Beside our own: the blobs, and four more. */
const maxStreams = fixed + 1 + 4;

interface Opened {
  bus: Bus;
  stop(): Promise<void>;
}

async function real(): Promise<Opened> {
  const nats = await startNats({
    extraConfig: `accounts { A {
      jetstream { max_streams: ${maxStreams} }
      users: [ { user: a, password: a } ]
    } }`,
  });
  const bus = await connectBus({
    url: nats.url,
    user: "a",
    pass: "a",
    blobBucket: names.blobBucket,
    announce: silent,
  });
  const stop = async () => {
    await bus.close();
    await nats.stop();
  };
  return { bus, stop };
}

const twin = async (): Promise<Opened> => {
  const bus = new MemoryBroker({ maxStreams }).connect();
  return { bus, stop: () => bus.close() };
};

const started = (instanceId: string): Commit =>
  Commit.parse({
    ...{ v: 1, commitId: `c-${instanceId}`, instanceId, execution: 1, at: 1, inbox: [] },
    events: [{ id: 1, kind: "instance.started", name: "n", input: { json: null } }],
  });

describe.each([
  ["the real server", real],
  ["the twin", twin],
])("a limit of the account, on %s", (_on, open) => {
  let opened: Opened;
  let store: HistoryStore;
  let happenings: Happening[];

  beforeEach(async () => {
    opened = await open();
    const { bus } = opened;
    await ensureTopology(bus, names, options);
    happenings = [];
    const runtime = systemRuntime((happening) => happenings.push(happening));
    const { historyShards: shards, replicas } = options;
    store = new HistoryStore({
      ...{ bus, names, layout: "per-instance", maxOwnStreams: 1000, shards, replicas, runtime },
    });
  });
  afterEach(() => opened.stop());

  async function begin(id: string): Promise<Position> {
    const position = await store.place(id);
    const outcome = await store.append(position, started(id), { startsExecution: true });
    if (outcome.kind === "fenced") throw new Error(`${id} is fenced`);
    return outcome.position;
  }
  const own = (list: Position[]) => list.filter(({ stream }) => stream.startsWith("H_")).length;
  const told = () => happenings.filter(({ kind }) => kind === "history.shared").length;

  it("begins all, in streams of their own while there is room, and leaves room for the blobs", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `i${n}`);
    const positions: Position[] = [];
    for (const id of ids) positions.push(await begin(id));
    expect(own(positions)).toBe(4);
    expect(told()).toBe(1);
    for (const id of ids) expect((await store.load(id))?.commits).toEqual([started(id)]);
    await opened.bus.blobs.put("a/b", bytes("too big for a message"));
  });

  it("shares when the server refuses a stream that was counted on", async () => {
    expect(own([await begin("first")])).toBe(1);
    for (let n = fixed + 1; n < maxStreams; n++) await opened.bus.ensureStream(limits(`OTHER${n}`));
    const positions = await Promise.all(["second", "third", "fourth"].map(begin));
    expect(own(positions)).toBe(0);
    expect(told()).toBe(1);
    expect((await store.load("third"))?.commits).toEqual([started("third")]);
  });

  it("gives streams again when there is room again", async () => {
    expect(own([await begin("first")])).toBe(1);
    for (let n = fixed + 1; n < maxStreams; n++) await opened.bus.ensureStream(limits(`OTHER${n}`));
    expect(own([await begin("second")])).toBe(0);
    for (let n = fixed + 1; n < maxStreams; n++) await opened.bus.deleteStream(`OTHER${n}`);
    let next = 0;
    await expect.poll(async () => own([await begin(`later-${next++}`)])).toBe(1);
  });
});
