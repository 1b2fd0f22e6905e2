/** What a history store promises of streams that hold one instance each. */
import { describe, expect, it } from "vitest";
import { ownHistory } from "../../shared/bus/topology.ts";
import type { HistoryStore, Position } from "../../shared/history/index.ts";
import { commitOf, completed, dyingAt, type HistoryRig, kinds, signal, started } from "./history-rig.ts";

export function ownHistoryCases(rig: HistoryRig): void {
  const { storeOn, newId, begin, go } = rig;
  describe("that gets a stream of its own later (HISTORY-5)", () => {
    const young = async (store: HistoryStore, id: string): Promise<Position> => {
      const place = await store.place(id, { started: false });
      const first = await go(store, place, commitOf(id, 1, started()), true);
      return go(store, first, commitOf(id, 1, signal(2)));
    };

    it("has the same commits there, goes on there, and is archived from there", async () => {
      const store = storeOn(rig.bus);
      const id = newId();
      let position = await young(store, id);
      const before = await store.readAll(id);
      position = (await store.moveToOwn(id, position)) ?? position;
      expect(position.stream).toBe(rig.names.ownHistoryStream(id));
      expect(await store.readAll(id)).toEqual(before);
      expect((await store.load(id))?.position).toEqual(position);
      await go(store, position, commitOf(id, 1, completed(3)));
      const whole = await store.readAll(id);
      expect(kinds(whole)).toEqual(["instance.started", "signal.received", "instance.completed"]);
      await store.archive(id);
      expect(await rig.bus.streamInfo(rig.names.ownHistoryStream(id))).toBeUndefined();
      expect(await store.readAll(id)).toEqual(whole);
      await store.remove(await store.look(id));
      expect(await store.exists(id)).toBe(false);
    });

    it("fences an owner that does not know of the move", async () => {
      const store = storeOn(rig.bus);
      const id = newId();
      const position = await young(store, id);
      await store.moveToOwn(id, position);
      const late = await storeOn(rig.bus).append(position, commitOf(id, 1, signal(3)), {
        startsExecution: false,
      });
      expect(late.kind).toBe("fenced");
    });

    it("is not moved by an owner that does not know the last commit, and by the next one whole", async () => {
      const store = storeOn(rig.bus);
      const id = newId();
      const old = await young(store, id);
      const position = await go(store, old, commitOf(id, 1, signal(3)));
      expect(await storeOn(rig.bus).moveToOwn(id, old)).toBeUndefined();
      expect((await store.load(id))?.position).toEqual(position);
      const moved = await store.moveToOwn(id, position);
      expect(moved?.stream).toBe(rig.names.ownHistoryStream(id));
      expect(kinds(await store.readAll(id))).toHaveLength(3);
    });

    it("is one history after a death at any write of the move, moved again or ended without", async () => {
      for (let nth = 1; nth <= 4; nth++) {
        const store = storeOn(rig.bus);
        const id = newId();
        const position = await young(store, id);
        await expect(storeOn(dyingAt(rig.bus, nth)).moveToOwn(id, position)).rejects.toThrow("died");
        const loaded = await store.load(id);
        expect(kinds(loaded?.commits), `death at write ${nth}`).toHaveLength(2);
        const found = loaded?.position ?? position;
        const there = nth % 2 === 0 ? found : ((await store.moveToOwn(id, found)) ?? found);
        await go(store, there, commitOf(id, 1, completed(3)));
        await store.archive(id);
        expect(kinds(await store.readAll(id)), `death at write ${nth}`).toHaveLength(3);
        expect(await rig.bus.streamInfo(rig.names.ownHistoryStream(id))).toBeUndefined();
      }
    });

    it("is followed into its own stream", async () => {
      const store = storeOn(rig.bus);
      const id = newId();
      const position = await young(store, id);
      let seen: () => void = () => undefined;
      const following = await store.follow(id, () => seen());
      const moved = (await store.moveToOwn(id, position)) ?? position;
      let mark = (await store.readOn(id))?.mark;
      await go(store, moved, commitOf(id, 1, signal(3)));
      await new Promise<void>((resolve) => {
        seen = async () => {
          const next = await store.readOn(id, mark);
          mark = next?.mark ?? mark;
          if (mark?.lastSeq !== moved.lastSeq) resolve();
        };
        seen();
      });
      await following?.stop();
    });
  });

  it("archives after a death at any write", async () => {
    for (let nth = 1; nth <= 8; nth++) {
      const id = newId();
      let position = await begin(storeOn(rig.bus), id);
      position = await go(storeOn(rig.bus), position, commitOf(id, 1, signal(2)));
      await go(storeOn(rig.bus), position, commitOf(id, 1, completed(3)));
      const before = await storeOn(rig.bus).readAll(id);
      await storeOn(dyingAt(rig.bus, nth))
        .archive(id)
        .catch(() => undefined);
      expect(await storeOn(rig.bus).readAll(id)).toEqual(before);
      expect((await storeOn(rig.bus).load(id))?.commits).toEqual(before);
      await Promise.all([storeOn(rig.bus).archive(id), storeOn(rig.bus).archive(id)]);
      expect(await storeOn(rig.bus).readAll(id)).toEqual(before);
      expect(await rig.bus.streamInfo(rig.names.ownHistoryStream(id))).toBeUndefined();
    }
  });

  it("does not archive what is still running", async () => {
    const id = newId();
    await begin(storeOn(rig.bus), id);
    await expect(storeOn(rig.bus).archive(id)).rejects.toMatchObject({ code: "instance_running" });
  });

  it("places beyond the limit in the shared streams and says so once", async () => {
    rig.happenings.length = 0;
    const store = storeOn(rig.bus, { maxOwnStreams: 0 });
    const [one, two] = [newId(), newId()];
    await begin(store, one);
    await begin(store, two);
    expect(await rig.bus.streamInfo(rig.names.ownHistoryStream(one))).toBeUndefined();
    expect(kinds(await storeOn(rig.bus).readAll(two))).toEqual(["instance.started"]);
    expect(rig.happenings.filter(({ kind }) => kind === "history.shared")).toHaveLength(1);
  });

  it("counts live streams", async () => {
    const live = await storeOn(rig.bus).place(newId());
    expect(live.stream).toMatch(/H_/);
    const full = storeOn(rig.bus, { maxOwnStreams: 1 });
    expect((await full.place(newId())).stream).toMatch(/HISTORY_/);
  });

  describe("two owners who disagree about the place", () => {
    const shared = () => storeOn(rig.bus, { layout: "shared" });

    it("own first: the shared one is fenced", async () => {
      const id = newId();
      const ownPosition = await storeOn(rig.bus).place(id);
      const sharedPosition = await shared().place(id);
      const late = await shared().append(sharedPosition, commitOf(id, 1, started()), {
        startsExecution: true,
      });
      expect(late).toEqual({ kind: "fenced" });
      await go(storeOn(rig.bus), ownPosition, commitOf(id, 1, started()), true);
      expect((await storeOn(rig.bus).load(id))?.position.stream).toBe(rig.names.ownHistoryStream(id));
    });

    it("shared first: the own one yields when it is placed", async () => {
      const id = newId();
      await begin(shared(), id);
      await expect(storeOn(rig.bus).place(id)).rejects.toMatchObject({ code: "history_exists" });
      expect(await rig.bus.streamInfo(rig.names.ownHistoryStream(id))).toBeUndefined();
      expect(kinds(await storeOn(rig.bus).readAll(id))).toEqual(["instance.started"]);
    });

    it("fences an owner who slept between making its stream and appending to it", async () => {
      const id = newId();
      const asleep = await storeOn(rig.bus).place(id);
      const outcome = await shared().append(await shared().place(id), commitOf(id, 1, started()), {
        startsExecution: true,
      });
      expect(outcome).toEqual({ kind: "fenced" });
      // A new reader finds the commit in the shared stream and goes on there.
      const loaded = await storeOn(rig.bus).load(id);
      expect(loaded?.position.stream).toMatch(/HISTORY_/);
      const late = await storeOn(rig.bus).append(asleep, commitOf(id, 1, started()), {
        startsExecution: true,
      });
      expect(late).toEqual({ kind: "fenced" });
      expect(kinds(await storeOn(rig.bus).readAll(id))).toEqual(["instance.started"]);
    });

    it("archives beside a stray commit of the one that was fenced", async () => {
      const id = newId();
      const own = await storeOn(rig.bus).place(id);
      const stray = await shared().append(await shared().place(id), commitOf(id, 1, started()), {
        startsExecution: true,
      });
      expect(stray).toEqual({ kind: "fenced" });
      await go(storeOn(rig.bus), own, commitOf(id, 1, started(), completed(2)), true);
      const before = await storeOn(rig.bus).readAll(id);
      await storeOn(rig.bus).archive(id);
      expect(await storeOn(rig.bus).readAll(id)).toEqual(before);
      expect((await storeOn(rig.bus).load(id))?.commits).toEqual(before);
    });

    it("removes an own stream whose making arrived after the history was archived", async () => {
      const id = newId();
      const store = storeOn(rig.bus);
      await go(store, await store.place(id), commitOf(id, 1, started(), completed(2)), true);
      await store.archive(id);
      await rig.bus.ensureStream(ownHistory(rig.names, id, 1));
      await store.archive(id);
      expect(await rig.bus.streamInfo(rig.names.ownHistoryStream(id))).toBeUndefined();
      expect(kinds(await store.readAll(id))).toEqual(["instance.started", "instance.completed"]);
    });

    it("leaves an own stream alone that is empty because its maker has not appended yet", async () => {
      const id = newId();
      await rig.bus.ensureStream(ownHistory(rig.names, id, 1));
      expect(await storeOn(rig.bus).load(id)).toBeUndefined();
      await begin(storeOn(rig.bus), id);
      expect(kinds(await storeOn(rig.bus).readAll(id))).toEqual(["instance.started"]);
    });
  });
}
