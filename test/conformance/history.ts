/** What a history store promises, whatever the layout and whatever bus carries it. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Commit } from "../../schemas/index.ts";
import type { Bus } from "../../shared/bus/bus.ts";
import { type Subjects, subjects } from "../../shared/bus/subjects.ts";
import { ensureTopology } from "../../shared/bus/topology.ts";
import { HistoryStore, type HistoryStoreOptions, type Position } from "../../shared/history/index.ts";
import { type Happening, systemRuntime } from "../../shared/runtime/index.ts";
import { blobKeys } from "../support/nats/blob-keys.ts";
import { beforeReading, commitOf, completed, kinds, losing, signal, started } from "./history-rig.ts";
import { ownHistoryCases } from "./own-histories.ts";

export interface HistorySuiteBus {
  bus: Bus;
  stop(): Promise<void>;
}

export function historySuite(
  on: string,
  layout: HistoryStoreOptions["layout"],
  open: () => Promise<HistorySuiteBus>,
): void {
  describe(`history, ${layout}, on ${on}`, () => {
    let opened: HistorySuiteBus;
    let bus: Bus;
    let names: Subjects;
    let happenings: Happening[];
    let ids = 0;

    const storeOn = (carrier: Bus, options: Partial<HistoryStoreOptions> = {}): HistoryStore =>
      new HistoryStore({
        bus: carrier,
        names,
        layout,
        maxOwnStreams: 1000,
        shards: 2,
        replicas: 1,
        runtime: systemRuntime((happening) => happenings.push(happening)),
        ...options,
      });
    const newId = (): string => `i${++ids}`;
    const begin = async (store: HistoryStore, id: string, ...events: object[]): Promise<Position> =>
      go(store, await store.place(id), commitOf(id, 1, ...(events.length > 0 ? events : [started()])), true);
    const go = async (store: HistoryStore, position: Position, commit: Commit, startsExecution = false) => {
      const outcome = await store.append(position, commit, { startsExecution });
      if (outcome.kind !== "appended") throw new Error("fenced");
      return outcome.position;
    };

    beforeAll(async () => {
      happenings = [];
      opened = await open();
      bus = opened.bus;
      names = subjects(layout === "shared" ? "hs" : "hp");
      await ensureTopology(bus, names, { partitions: 1, historyShards: 2, replicas: 1 });
    });
    afterAll(() => opened?.stop());

    it("knows nothing of an instance that never was", async () => {
      const store = storeOn(bus);
      expect(await store.load("nobody")).toBeUndefined();
      expect(await store.readAll("nobody")).toBeUndefined();
      expect(await store.exists("nobody")).toBe(false);
    });

    it("gives back what was appended, in order, and the position behind it", async () => {
      const store = storeOn(bus);
      const id = newId();
      const first = commitOf(id, 1, started());
      const second = commitOf(id, 1, signal(2), signal(3));
      let position = await go(store, await store.place(id), first, true);
      position = await go(store, position, second);
      expect(await storeOn(bus).load(id)).toEqual({ commits: [first, second], position });
      expect(await store.exists(id)).toBe(true);
    });

    it("fences whoever does not know the last commit", async () => {
      const store = storeOn(bus);
      const id = newId();
      const old = await begin(store, id);
      const current = await go(store, old, commitOf(id, 1, signal(2)));
      expect(await store.append(old, commitOf(id, 1, signal(2)), { startsExecution: false })).toEqual({
        kind: "fenced",
      });
      const again = await store.place(id).catch(() => undefined);
      if (again) {
        expect(await store.append(again, commitOf(id, 1, started()), { startsExecution: true })).toEqual({
          kind: "fenced",
        });
      }
      await go(store, current, commitOf(id, 1, signal(3)));
      expect(kinds(await store.readAll(id))).toEqual([
        "instance.started",
        "signal.received",
        "signal.received",
      ]);
    });

    it("lets exactly one of many first commits through", async () => {
      const id = newId();
      const stores = Array.from({ length: 10 }, () => storeOn(bus));
      const outcomes = await Promise.all(
        stores.map(async (store) => {
          const position = await store.place(id).catch(() => undefined);
          return position
            ? store.append(position, commitOf(id, 1, started()), { startsExecution: true })
            : { kind: "fenced" as const };
        }),
      );
      expect(outcomes.filter((outcome) => outcome.kind === "appended")).toHaveLength(1);
      expect(kinds(await storeOn(bus).readAll(id))).toEqual(["instance.started"]);
    });

    it("loads the latest execution alone and reads all of them", async () => {
      const store = storeOn(bus);
      const id = newId();
      let position = await begin(store, id);
      const continued = { id: 2, kind: "instance.continued", name: "n", input: { json: 1 } };
      position = await go(store, position, commitOf(id, 1, continued));
      const second = commitOf(id, 2, started());
      position = await go(store, position, second, true);
      const third = commitOf(id, 2, signal(2));
      position = await go(store, position, third);
      expect(await store.load(id)).toEqual({ commits: [second, third], position });
      expect((await store.readAll(id))?.map((commit) => commit.execution)).toEqual([1, 1, 2, 2]);
    });

    it("reads on behind a mark, and anew where the mark fits no more", async () => {
      const store = storeOn(bus);
      const id = newId();
      expect(await store.readOn(id)).toBeUndefined();
      let position = await begin(store, id);
      const first = await store.readOn(id);
      expect(first).toMatchObject({ anew: true });
      expect(kinds(first?.commits)).toEqual(["instance.started"]);
      expect(await store.readOn(id, first?.mark)).toMatchObject({
        anew: false,
        commits: [],
        mark: first?.mark,
      });
      const added = commitOf(id, 1, signal(2));
      position = await go(store, position, added);
      const second = await store.readOn(id, first?.mark);
      expect(second).toMatchObject({ anew: false, commits: [added] });
      await go(store, position, commitOf(id, 1, completed(3)));
      await store.archive(id);
      const ended = ["instance.started", "signal.received", "instance.completed"];
      const third = await store.readOn(id, second?.mark);
      expect(
        kinds(third?.anew ? third.commits : [...(first?.commits ?? []), added, ...(third?.commits ?? [])]),
      ).toEqual(ended);
      await store.remove(await store.look(id));
      expect(await store.readOn(id, third?.mark)).toBeUndefined();
      await begin(store, id);
      const again = await store.readOn(id, third?.mark);
      expect(again?.anew).toBe(true);
      expect(kinds(again?.commits)).toEqual(["instance.started"]);
    });

    it("counts signals before the start to the first execution", async () => {
      const store = storeOn(bus);
      const id = newId();
      let position = await go(store, await store.place(id), commitOf(id, 0, signal(1)), true);
      position = await go(store, position, commitOf(id, 0, signal(2)));
      expect((await store.load(id))?.commits.map((commit) => commit.execution)).toEqual([0, 0]);
      position = await go(store, position, commitOf(id, 1, started(3)), true);
      const loaded = await store.load(id);
      expect(loaded?.commits.map((commit) => commit.execution)).toEqual([0, 0, 1]);
      expect(loaded?.position).toEqual(position);
    });

    it.each([
      ["stored, answer lost", ["stored"], true],
      ["not stored, tried again", ["unsent"], false],
      ["not stored twice", ["unsent", "unsent"], false],
      ["stored by a second try whose answer is lost too", ["unsent", "stored"], true],
    ] as const)("resolves an ambiguous append: %s", async (_, losses, landed) => {
      happenings.length = 0;
      const id = newId();
      const position = await begin(storeOn(bus), id);
      const commit = commitOf(id, 1, signal(2));
      const outcome = await storeOn(losing(bus, [...losses])).append(position, commit, {
        startsExecution: false,
      });
      expect(outcome.kind).toBe("appended");
      expect(kinds(await storeOn(bus).readAll(id))).toEqual(["instance.started", "signal.received"]);
      expect(happenings).toContainEqual({ kind: "append.ambiguous", instanceId: id, landed });
    });

    it("calls an ambiguous append fenced where somebody else was first", async () => {
      const id = newId();
      const position = await begin(storeOn(bus), id);
      await go(storeOn(bus), position, commitOf(id, 1, signal(2)));
      const outcome = await storeOn(losing(bus, ["unsent"])).append(position, commitOf(id, 1, signal(2)), {
        startsExecution: false,
      });
      expect(outcome).toEqual({ kind: "fenced" });
    });

    it("sends no append again whose writer gave up meanwhile", async () => {
      const id = newId();
      const position = await begin(storeOn(bus), id);
      const outcome = await storeOn(losing(bus, ["unsent"])).append(position, commitOf(id, 1, signal(2)), {
        startsExecution: false,
        signal: AbortSignal.abort(),
      });
      expect(outcome).toEqual({ kind: "fenced" });
      expect(kinds(await storeOn(bus).readAll(id))).toEqual(["instance.started"]);
    });

    it("keeps a commit that is too big for a message", async () => {
      const store = storeOn(bus);
      const id = newId();
      const big = { ...signal(2), payload: { json: "x".repeat(2 * 1024 * 1024) } };
      const commit = commitOf(id, 1, big);
      const position = await go(store, await begin(store, id), commit);
      const after = commitOf(id, 1, signal(3));
      await go(store, position, after);
      expect((await store.load(id))?.commits.slice(1)).toEqual([commit, after]);
      await store.remove(await store.look(id));
      expect(await blobKeys(bus.blobs, `${id}/`)).toEqual([]);
    });

    it("names the message that cannot be read", async () => {
      const id = newId();
      const position = await begin(storeOn(bus), id);
      await bus.publish(position.subject, new TextEncoder().encode('{"v":2}'));
      await expect(storeOn(bus).load(id)).rejects.toMatchObject({
        kind: "bug",
        code: "history_unreadable",
        details: { instanceId: id },
      });
    });

    it("archives an ended instance: same commits, no stream of its own, twice is once", async () => {
      const store = storeOn(bus);
      const id = newId();
      let position = await go(store, await store.place(id), commitOf(id, 0, signal(1)), true);
      position = await go(store, position, commitOf(id, 1, started(2)), true);
      const continued = { id: 3, kind: "instance.continued", name: "n", input: { json: 1 } };
      position = await go(store, position, commitOf(id, 1, continued));
      position = await go(store, position, commitOf(id, 2, started()), true);
      position = await go(store, position, commitOf(id, 2, completed(2)));
      const all = await store.readAll(id);
      const loaded = await store.load(id);
      await store.archive(id);
      await store.archive(id);
      expect(await store.readAll(id)).toEqual(all);
      expect((await store.load(id))?.commits).toEqual(loaded?.commits);
      expect(await bus.streamInfo(names.ownHistoryStream(id))).toBeUndefined();
      expect(await store.append(position, commitOf(id, 2, signal(3)), { startsExecution: false })).toEqual(
        layout === "shared" ? { kind: "appended", position: expect.anything() } : { kind: "fenced" },
      );
    });

    it("reads a history that is archived between finding and reading it", async () => {
      const reads: ((store: HistoryStore, id: string) => Promise<Commit[] | undefined>)[] = [
        (store, id) => store.readAll(id),
        async (store, id) => (await store.load(id))?.commits,
        async (store, id) => (await store.readOn(id))?.commits,
      ];
      for (const read of reads) {
        const id = newId();
        const position = await begin(storeOn(bus), id);
        await go(storeOn(bus), position, commitOf(id, 1, completed(2)));
        const meanwhile = beforeReading(bus, () => storeOn(bus).archive(id));
        expect(kinds(await read(storeOn(meanwhile), id))).toEqual(["instance.started", "instance.completed"]);
      }
    });

    it("forgets a removed instance, whose id is then free", async () => {
      const store = storeOn(bus);
      const id = newId();
      await begin(store, id, started(), completed(2));
      await store.remove(await store.look(id));
      await store.remove(await store.look(id));
      expect(await store.exists(id)).toBe(false);
      await begin(store, id);
      expect(kinds(await store.readAll(id))).toEqual(["instance.started"]);
    });

    it("defect 3: fences the owner of a removed history from the one begun anew under its id", async () => {
      const store = storeOn(bus);
      const id = newId();
      const stale = await begin(store, id);
      await store.remove(await store.look(id));
      const fresh = await begin(store, id);
      expect(fresh.lastSeq).toBeGreaterThan(stale.lastSeq);
      expect(await store.append(stale, commitOf(id, 1, signal(2)), { startsExecution: false })).toEqual({
        kind: "fenced",
      });
      expect(kinds(await store.readAll(id))).toEqual(["instance.started"]);
    });

    if (layout === "per-instance")
      ownHistoryCases({
        get bus() {
          return bus;
        },
        get names() {
          return names;
        },
        get happenings() {
          return happenings;
        },
        ...{ storeOn, newId, begin, go },
      });
  });
}
