import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { StreamChunk } from "../../../schemas/index.ts";
import * as app from "../../support/apps/hosted-app.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

const appPath = fileURLToPath(new URL("../../support/apps/hosted-app.ts", import.meta.url));

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

let serial = 0;
const fresh = (): string => `f${++serial}`;
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const untilGone = (pid: number) => rig.poll(`the end of ${pid}`, async () => !isAlive(pid));

type On = Awaited<ReturnType<SessionRig["open"]>>;
const calling =
  (on: On, id: string) =>
  async (name: string, input: unknown = null): Promise<unknown> =>
    rig.output(await rig.call(on, id, { name, input }));
const failing = async (on: On, id: string, name: string, input: unknown = null) => {
  const result = await rig.result(await rig.call(on, id, { name, input }));
  return result.kind === "failed" ? result.error : result;
};
const pidOf = async (on: On, id: string): Promise<number> =>
  ((await calling(on, id)("where")) as { pid: number }).pid;

describe("a session in a Python host", () => {
  it("keeps bytes under names, and hears why it may not", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const blobs = [{ name: "old", key: "session-blobs/of-the-holder-before", bytes: 3, storedAt: 1 }];
    await rig.bus.blobs.put("session-blobs/of-the-holder-before", Buffer.from("old"));
    const on = await rig.open("py", id, { blobs });
    const call = calling(on, id);
    const data = "x".repeat(3000);
    expect(await call("keep", ["weights", data])).toEqual({
      bytes: data.length,
      found: data,
      names: ["old", "weights"],
      deleted: [true, false],
    });
    expect(await failing(on, id, "keep", ["a b", ""])).toMatchObject({
      code: "invalid_blob",
      message: expect.stringContaining("A-Z a-z 0-9 . _ -"),
    });
    expect(await rig.heard(id, "blob")).toMatchObject({
      epoch: on.epoch,
      name: "weights",
      stored: { bytes: data.length },
    });
  });

  it("lives there, and answers like any other", async () => {
    const { workerId } = await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py", id);
    const call = calling(on, id);
    const where = (await call("where")) as { pid: number; omp: string; threads: number; id: string };
    expect(where).toMatchObject({ id, omp: expect.stringMatching(/^\d+$/), threads: Number(where.omp) });
    expect(where.pid).not.toBe(process.pid);
    await rig.happening("host.log", (one) => one.message === "loaded");
    expect(await call("count", 2)).toBe(2);
    expect(await call("count", 3)).toBe(5);
    expect(await call("add_async", 1)).toBe(6);
    expect(await failing(on, id, "count", "two")).toMatchObject({ code: "invalid_input" });
    expect(await failing(on, id, "weird")).toMatchObject({
      code: "not_serialisable",
      message: expect.stringContaining("weird returned a value that cannot be sent"),
      retryable: false,
    });
    const of = await rig.call(on, id, { name: "stream", input: 3 });
    expect(await rig.output(of)).toBe(3);
    const chunks = await rig.bus.read(rig.names.streamsStream, rig.names.stream("i1", 1, of));
    const read = chunks?.map(
      ({ body }) => StreamChunk.parse(JSON.parse(new TextDecoder().decode(body))).chunk,
    );
    expect(read).toEqual([{ json: { i: 0 } }, { json: { i: 1 } }, { json: { i: 2 } }]);
    for (const message of ["streamed", "printed", "warned"]) {
      await rig.happening("work.log", (one) => one.sessionId === id && one.message === message);
    }
    for (const name of ["wait", "wait_async"]) {
      const waiting = await rig.call(on, id, { name });
      await rig.happening("call.started", (one) => one.of === waiting);
      await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of: waiting } as never);
    }
    await rig.work(workerId, id, { kind: "event", name: "hello", payload: { json: 7 } } as never);
    expect(await call("next")).toEqual({ name: "hello", payload: 7 });
    await rig.call(on, id, { name: "give_up", input: "enough" });
    expect(await rig.heard(id, "lost")).toMatchObject({ reason: "aborted", detail: "enough" });
  });

  it("shows an exception with its type, message and traceback", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py", id);
    expect(await failing(on, id, "fail")).toMatchObject({
      code: "asked_for",
      message: "as asked",
      retryable: false,
      details: { a: 1 },
    });
    expect(await failing(on, id, "divide", 0)).toMatchObject({
      code: "KeyError",
      message: "'nothing to share'",
      retryable: true,
      details: { type: "builtins.KeyError" },
      stack: expect.stringMatching(/Traceback[\s\S]*counter\.py", line \d+, in divide/),
      cause: { code: "ZeroDivisionError", message: "division by zero" },
    });
    const failed = fresh();
    await rig.claim("py", failed, { config: { fail: "no weights" } });
    expect((await rig.heard(failed, "init_failed")).error).toMatchObject({
      code: "ValueError",
      message: "no weights",
    });
  });

  it("gets batches, and answers each item alone", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py", id);
    const asked = [];
    for (const input of [1, 13, "x", 4]) asked.push(await rig.call(on, id, { name: "double", input }));
    const results = await Promise.all(asked.map((of) => rig.result(of)));
    expect(results).toMatchObject([
      { kind: "completed", output: { json: 2 } },
      { kind: "failed", error: { code: "odd", retryable: false } },
      { kind: "failed", error: { code: "invalid_input" } },
      { kind: "completed", output: { json: 8 } },
    ]);
    await rig.happening("batch.ran", (one) => one.type === "py" && one.size >= 3);
  });

  it("runs as many calls at once as its type says", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py-parallel", id);
    const asked = [await rig.call(on, id, { name: "meet" }), await rig.call(on, id, { name: "meet" })];
    const onMain = await Promise.all(asked.map((of) => rig.output(of)));
    expect([...onMain].sort()).toEqual([false, true]);
  });

  it("gets any text and number as it is", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py", id);
    const value = {
      text: "grüße 你好 🎈\u2028\n\u0000 \ud800",
      n: [0, -1.5, 1e300, 9007199254740991],
      no: null,
    };
    expect(await calling(on, id)("echo", value)).toEqual(value);
    for (const plain of ["", 0, false, null, [], {}])
      expect(await calling(on, id)("echo", plain)).toEqual(plain);
  });

  it("may leave by itself, in a call and in init", async () => {
    await rig.worker(app, { appPath });
    const [id, early] = [fresh(), fresh()];
    const on = await rig.open("py", id);
    await rig.call(on, id, { name: "leave", input: 4 });
    expect(await rig.heard(id, "lost")).toMatchObject({
      reason: "crashed",
      detail: expect.stringContaining("ended with exit code 4"),
    });
    await rig.claim("py", early, { config: { exit: 5 } });
    const said = await rig.until("the end of its init", () =>
      rig.told.find(({ sessionId, report }) => sessionId === early && report.kind !== "claimed"),
    );
    expect(JSON.stringify(said)).toMatch(/ended with exit code 5.*no room on the device/);
  });

  it("gets bytes as they are, both ways", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py", id);
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i % 256));
    const reversed = Buffer.from(bytes).reverse();
    expect(await calling(on, id)("reverse", bytes.toString("base64"))).toBe(reversed.toString("base64"));
    expect(await calling(on, id)("reverse", "")).toBe("");
  });

  it("is lost alone when its host crashes, with the code and the last words", async () => {
    await rig.worker(app, { appPath });
    const [id, other] = [fresh(), fresh()];
    const on = await rig.open("py", id);
    const onOther = await rig.open("py", other);
    await rig.call(on, id, { name: "crash", input: 3 });
    const lost = await rig.heard(id, "lost");
    expect(lost.reason).toBe("crashed");
    expect(lost.detail).toMatch(/python3 .*counter\.py\) ended with exit code 3/);
    expect(lost.detail).toContain("the model is on fire");
    expect(await calling(onOther, other)("count", 1)).toBe(1);
    const again = await rig.open("py", id, { attachment: 2 });
    expect(await calling(again, id)("count", 1)).toBe(1);
    process.kill(await pidOf(again, id), "SIGKILL");
    expect(await rig.heard(id, "lost", 2)).toMatchObject({
      reason: "crashed",
      detail: expect.stringContaining("signal SIGKILL"),
    });
  });

  it("is hung when it does not answer pings, and computing without a pause is not", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py-hanging", id);
    expect(await calling(on, id)("compute", 1.5)).toBe("done");
    const pid = await pidOf(on, id);
    process.kill(pid, "SIGSTOP");
    expect(await rig.heard(id, "lost")).toMatchObject({
      reason: "hung",
      detail: expect.stringContaining("did not answer"),
    });
    expect(isAlive(pid)).toBe(false);
  });

  it("takes what it started along", async () => {
    const { workerId } = await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py", id);
    const child = (await calling(on, id)("child")) as number;
    const pid = await pidOf(on, id);
    expect(isAlive(child)).toBe(true);
    await rig.work(workerId, id, { kind: "close", epoch: on.epoch } as never);
    await rig.happening("work.log", (one) => one.sessionId === id && one.message === "shut down");
    await untilGone(pid);
    await untilGone(child);
  });

  it.each(["py-by-calls", "py-by-age", "py-by-size"])(
    "moves to a fresh host, unnoticed: %s",
    async (type) => {
      await rig.worker(app, { appPath });
      const id = fresh();
      const on = await rig.open(type, id);
      const pids = new Set<number>();
      let counted = 0;
      await rig.poll("a second host", async () => {
        expect(await calling(on, id)("count", 1)).toBe(++counted);
        pids.add(await pidOf(on, id));
        return pids.size > 1;
      });
      expect(rig.kinds(id)).toEqual(["activated"]);
      await rig.stopWorkers();
      for (const pid of pids) await untilGone(pid);
    },
  );

  it("has the environment of its type", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py-env", id);
    const input = ["OMP_NUM_THREADS", "MODEL_HOME"];
    expect(await calling(on, id)("environment", input)).toEqual({
      OMP_NUM_THREADS: "7",
      MODEL_HOME: "/models",
    });
  });

  it("fails a call whose result is too long, and nothing else", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("py-small", id);
    expect(await failing(on, id, "big", 200_000)).toMatchObject({
      code: "not_serialisable",
      message: expect.stringContaining("beyond the limit"),
    });
    expect(await failing(on, id, "environment", ["x".repeat(200_000)])).toMatchObject({
      code: "host_message_too_large",
    });
    expect(await calling(on, id)("count", 1)).toBe(1);
    expect(rig.kinds(id)).not.toContain("lost");
  });
});

describe("a command", () => {
  it.each([
    ["missing", /there is no command no-such-command-anywhere/],
    ["not-executable", /counter\.py is not executable/],
    ["ends-at-once", /\(\/bin\/sh -c .*\) ended with exit code 5\nno weights here/],
    ["chatty", /wrote to stdout what is not the host protocol: "Loading the model"/],
    ["newer", /speaks version 2 of the host protocol, and this worker speaks version 1/],
    ["without-calls", /has no call ask; it has add_async, big/],
  ])("that is no host fails the init with the reason: %s", async (type, reason) => {
    await rig.worker(app, { appPath });
    const id = fresh();
    await rig.claim(type, id);
    expect((await rig.heard(id, "init_failed")).error.message).toMatch(reason);
  });
});

describe("a host that breaks the protocol", () => {
  const refused = (why: string) => rig.happening("host.refused", (one) => one.why === why);
  const done = '{"kind":"done","id":"$id","value":"ok"}';

  it.each([
    ["reply_to_no_request", ['{"kind":"done","id":9999,"value":1}', done]],
    ["second_reply", [done, done]],
    ["chunk_of_no_request", ['{"kind":"chunk","id":9999,"chunk":1,"value":1}', done]],
  ])("by a %s is told so, and nothing else is harmed", async (why, lines) => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("loose", id);
    expect(await calling(on, id)("say", lines)).toBe("ok");
    await refused(why);
    expect(await calling(on, id)("say", [done])).toBe("ok");
    expect(rig.kinds(id)).not.toContain("lost");
  });

  it("by a reply after cancel is told so", async () => {
    const { workerId } = await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("loose", id);
    const of = await rig.call(on, id, { name: "say", input: ["hold"] });
    await rig.happening("call.started", (one) => one.of === of);
    await rig.work(workerId, id, { kind: "cancel", epoch: on.epoch, execution: 1, of } as never);
    await refused("reply_after_cancel");
    expect(await calling(on, id)("say", [done])).toBe("ok");
  });

  it("by a line beyond the limit fails that call by name, and nothing else", async () => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("loose", id);
    expect(await failing(on, id, "say", ["long"])).toMatchObject({
      code: "host_message_too_large",
      message: expect.stringMatching(/sent a message of 200\d\d\d bytes, and one may have 104857/),
      retryable: false,
    });
    await refused("message_too_large");
    expect(await calling(on, id)("say", [done])).toBe("ok");
  });

  it.each([
    ["hello", /not the host protocol: "hello"/],
    ['{"kind":"dance","id":1}', /not the host protocol \(kind: .*"kind":"dance"/],
    ['{"kind":"done","id":"seven"}', /not the host protocol \(id: /],
    ["[1]", /not the host protocol: "\[1\]"/],
  ])("by saying %s is ended as crashed, with what it said", async (line, reason) => {
    await rig.worker(app, { appPath });
    const id = fresh();
    const on = await rig.open("loose", id);
    await rig.call(on, id, { name: "say", input: [line] });
    const lost = await rig.heard(id, "lost");
    expect(lost.reason).toBe("crashed");
    expect(lost.detail).toMatch(reason);
  });
});
