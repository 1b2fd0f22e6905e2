import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { StreamChunk } from "../../../schemas/index.ts";
import * as app from "../../support/apps/threads-app.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

const appPath = fileURLToPath(new URL("../../support/apps/threads-app.ts", import.meta.url));

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `t${++serial}`;

async function opened(type: string, worker = true) {
  const held = worker ? await rig.worker(app, { appPath }) : undefined;
  const id = fresh();
  const on = await rig.open(type, id);
  const start = (name: string, input: unknown = null) => rig.call(on, id, { name, input });
  const call = async (name: string, input: unknown = null) => rig.output(await start(name, input));
  return { id, on, start, call, workerId: held?.workerId ?? "" };
}

describe("a session on several threads of one host", () => {
  it("computes on all of them at once, on memory they share", async () => {
    const { start, call } = await opened("parallel");
    const asked = [await start("meet", 3), await start("meet", 3), await start("meet", 3)];
    const threads = await Promise.all(asked.map((of) => rig.output(of)));
    expect(new Set(threads).size).toBe(3);
    const counts = await Promise.all([1, 1, 1, 1, 1, 1].map((by) => call("count", by)));
    expect([...counts].sort()).toEqual([1, 2, 3, 4, 5, 6]);
    const [, , made] = (await call("look")) as number[];
    expect(made).toBe(3);
  });

  it("keeps blobs under names for all of them", async () => {
    const { id, call } = await opened("parallel");
    const kept = await Promise.all(["a", "b", "c", "d"].map((name) => call("keep", [name, `of ${name}`])));
    expect(kept).toMatchObject(
      ["a", "b", "c", "d"].map((name) => ({ found: `of ${name}`, deleted: [true, false] })),
    );
    expect(
      await rig.result(
        await rig.call((await rig.heard(id, "activated")).on, id, { name: "keep", input: ["a/b", ""] }),
      ),
    ).toMatchObject({
      kind: "failed",
      error: { code: "invalid_blob" },
    });
  });

  it("streams and cancels on each of them", async () => {
    const { id, on, start, workerId } = await opened("parallel");
    const waiting = await start("wait");
    await rig.happening("call.started", (one) => one.of === waiting);
    const streams = await Promise.all([start("stream", 4), start("stream", 4)]);
    for (const of of streams) {
      expect(await rig.output(of)).toBe(4);
      const chunks = await rig.bus.read(rig.names.streamsStream, rig.names.stream("i1", 1, of));
      const read = chunks?.map(
        ({ body }) => StreamChunk.parse(JSON.parse(new TextDecoder().decode(body))).chunk,
      );
      expect(read).toEqual([{ json: 0 }, { json: 1 }, { json: 2 }, { json: 3 }]);
    }
    await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of: waiting } as never);
    await rig.happening("call.ended", (one) => one.of === waiting);
    expect(await rig.result(await start("events"))).toMatchObject({
      kind: "failed",
      error: { code: "events_not_shared" },
    });
  });

  it("is lost as a whole when one of them hangs or ends", async () => {
    const hanging = await opened("parallel");
    await hanging.start("hang");
    expect(await rig.heard(hanging.id, "lost")).toMatchObject({ reason: "hung" });
    const crashing = await opened("parallel", false);
    await crashing.start("crash");
    expect(await rig.heard(crashing.id, "lost")).toMatchObject({
      reason: "crashed",
      detail: expect.stringContaining("exit code 3"),
    });
  });

  it("is not opened where one of them cannot make its state", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    await rig.claim("half-broken", id);
    expect((await rig.heard(id, "init_failed")).error).toMatchObject({ code: "no_room" });
  });

  it("comes back from a checkpoint on all of them", async () => {
    const first = await opened("parallel");
    expect(await first.call("count", 7)).toBe(7);
    await rig.work(first.workerId, first.id, { kind: "drain", epoch: first.on.epoch, reason: "x" } as never);
    await rig.heard(first.id, "lost");
    const saved = rig.told.find(
      (one) => one.sessionId === first.id && one.report.kind === "checkpointed",
    )?.report;
    if (saved?.kind !== "checkpointed") throw new Error("nothing was saved");
    const again = await rig.open("parallel", first.id, { attachment: 2, restore: saved.checkpoint });
    const call = async (name: string, input: unknown = null) =>
      rig.output(await rig.call(again, first.id, { name, input }));
    expect(await call("count", 1)).toBe(8);
    expect(((await call("look")) as number[])[2]).toBe(3);
  });
});

it("gives one thread what several would share", async () => {
  const { call } = await opened("single");
  expect(await call("count", 2)).toBe(2);
});

it("never asks a host that is not to be pinged", async () => {
  const { id, call } = await opened("unwatched");
  expect(await call("block", 1_200)).toBe("done");
  expect(rig.kinds(id)).not.toContain("lost");
});
