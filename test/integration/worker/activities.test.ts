import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { StreamChunk } from "../../../schemas/index.ts";
import { defineActivity } from "../../../shared/definitions/index.ts";
import { NonRetryableError } from "../../../shared/errors/index.ts";
import { ActivityRig, type Reported } from "../../support/worlds/activity-rig.ts";

let rig: ActivityRig;
beforeAll(async () => {
  rig = await ActivityRig.start();
});
afterAll(() => rig.stop());
afterEach(() => rig.stopWorkers());

const failureOf = ({ result }: Reported) => {
  if (result.kind !== "failed") throw new Error(`reported ${result.kind}`);
  return result.error;
};

describe("what an activity returns and throws", () => {
  it("is reported, and the task is gone", async () => {
    const double = defineActivity("double", { run: (_ctx, n: number) => n * 2 });
    const { workerId } = await rig.startWorker({ double });
    await rig.publishTask({ instanceId: "i-double", name: "double", input: 21, of: 7, execution: 3 });
    const report = await rig.report("i-double");
    expect(report).toMatchObject({ execution: 3, of: 7, attempt: 1, workerId });
    expect(report.result).toEqual({ kind: "completed", output: { json: 42 } });
    await rig.untilQueueIsEmpty();
  });

  it("tells the start where asked, before the result", async () => {
    const quick = defineActivity("quick", { run: () => "done" });
    await rig.startWorker({ quick });
    await rig.publishTask({ instanceId: "i-start", name: "quick", reportStart: true });
    await rig.report("i-start");
    const kinds = rig.reports.filter((r) => r.instanceId === "i-start").map((r) => r.result.kind);
    expect(kinds).toEqual(["started", "completed"]);
  });

  it("makes a failure of everything that can be thrown", async () => {
    const cyclic = Object.assign(new Error("cyclic"), { details: {} as Record<string, unknown> });
    cyclic.details.self = cyclic;
    cyclic.cause = cyclic;
    const hostile = new Error("hostile");
    Object.defineProperty(hostile, "message", {
      get() {
        throw new Error("no");
      },
    });
    const throwing: Record<string, unknown> = {
      error: new Error("boom"),
      text: "just text",
      nothing: undefined,
      cyclic,
      hostile,
      final: new NonRetryableError("never again", { code: "bad_card" }),
    };
    const thrower = defineActivity("thrower", {
      async run(_ctx, which: string) {
        throw throwing[which];
      },
    });
    const syncThrower = defineActivity("sync-thrower", {
      run(): never {
        throw new Error("at once");
      },
    });
    await rig.startWorker({ thrower, syncThrower });
    for (const which of Object.keys(throwing)) {
      await rig.publishTask({ instanceId: `i-throw-${which}`, name: "thrower", input: which });
    }
    await rig.publishTask({ instanceId: "i-throw-sync", name: "sync-thrower" });
    expect(failureOf(await rig.report("i-throw-error"))).toMatchObject({ message: "boom", retryable: true });
    expect(failureOf(await rig.report("i-throw-text"))).toMatchObject({
      code: "thrown_value",
      retryable: true,
    });
    expect(failureOf(await rig.report("i-throw-nothing"))).toMatchObject({ code: "thrown_value" });
    expect(failureOf(await rig.report("i-throw-cyclic"))).toMatchObject({ message: "cyclic" });
    expect(failureOf(await rig.report("i-throw-hostile"))).toMatchObject({ code: "thrown_value" });
    expect(failureOf(await rig.report("i-throw-final"))).toMatchObject({
      code: "bad_card",
      retryable: false,
    });
    expect(failureOf(await rig.report("i-throw-sync"))).toMatchObject({ message: "at once" });
    await rig.untilQueueIsEmpty();
  });

  it("refuses input and output that do not fit, with the path and no retry", async () => {
    const strict = defineActivity("strict", {
      input: z.object({ n: z.number() }),
      output: z.object({ ok: z.boolean() }),
      run: async (_ctx, { n }) => (n === 1 ? { ok: true } : ({ ok: "yes" } as unknown as { ok: boolean })),
    });
    await rig.startWorker({ strict });
    await rig.publishTask({ instanceId: "i-in", name: "strict", input: { n: "one" } });
    await rig.publishTask({ instanceId: "i-out", name: "strict", input: { n: 2 } });
    const input = failureOf(await rig.report("i-in"));
    expect(input).toMatchObject({ code: "invalid_input", retryable: false });
    expect(input.message).toContain("n:");
    expect(failureOf(await rig.report("i-out"))).toMatchObject({ code: "invalid_output", retryable: false });
  });

  it("fails what has no JSON form and moves what is big by the object store", async () => {
    const odd = defineActivity("odd", {
      run: (_ctx, which: string): unknown => {
        const cycle: Record<string, unknown> = {};
        cycle.self = cycle;
        return { cycle, bigint: 1n, big: "x".repeat(400_000), nothing: undefined }[which];
      },
    });
    await rig.startWorker({ odd });
    for (const which of ["cycle", "bigint", "big", "nothing"]) {
      await rig.publishTask({ instanceId: `i-odd-${which}`, name: "odd", input: which });
    }
    for (const which of ["cycle", "bigint"]) {
      const failure = failureOf(await rig.report(`i-odd-${which}`));
      expect(failure).toMatchObject({ code: "not_serialisable", retryable: false });
    }
    expect((await rig.report("i-odd-nothing")).result).toEqual({
      kind: "completed",
      output: { json: undefined },
    });
    const big = (await rig.report("i-odd-big")).result;
    expect(big).toMatchObject({ kind: "completed", output: { blob: { bytes: 400_002 } } });
  });
});

describe("timeouts", () => {
  const never = defineActivity("never", {
    run: (ctx, seen: string) =>
      new Promise<void>(() => ctx.signal.addEventListener("abort", () => aborted.add(seen))),
  });
  const aborted = new Set<string>();

  it("gives up on code that takes too long, and tells it", async () => {
    await rig.startWorker({ never });
    const timeouts = { startToCloseMs: 60 };
    await rig.publishTask({ instanceId: "i-close", name: "never", input: "close", timeouts });
    const failure = failureOf(await rig.report("i-close"));
    expect(failure).toMatchObject({
      code: "timeout",
      retryable: true,
      details: { timeout: "start_to_close" },
    });
    expect(aborted).toContain("close");
    await rig.untilQueueIsEmpty();
  });

  it("ignores what code says after it was given up", async () => {
    let finish: (value: string) => void = () => undefined;
    const late = defineActivity("late", { run: () => new Promise<string>((resolve) => (finish = resolve)) });
    await rig.startWorker({ late });
    await rig.publishTask({ instanceId: "i-late", name: "late", timeouts: { startToCloseMs: 50 } });
    await rig.report("i-late");
    finish("too late");
    await rig.publishTask({ instanceId: "i-late-2", name: "late", timeouts: { startToCloseMs: 50 } });
    await rig.report("i-late-2");
    expect(rig.reports.filter((r) => r.instanceId === "i-late")).toHaveLength(1);
  });

  it("gives up on code that stops beating, and not on code that beats", async () => {
    const beating = defineActivity("beating", {
      async run(ctx, beats: number) {
        for (let i = 0; i < beats; i++) {
          ctx.heartbeat(i);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return beats === 0 ? new Promise(() => undefined) : "alive";
      },
    });
    await rig.startWorker({ beating });
    const timeouts = { heartbeatMs: 150 };
    await rig.publishTask({ instanceId: "i-beat", name: "beating", input: 20, timeouts });
    await rig.publishTask({ instanceId: "i-no-beat", name: "beating", input: 0, timeouts });
    expect(failureOf(await rig.report("i-no-beat"))).toMatchObject({
      code: "timeout",
      details: { timeout: "heartbeat" },
    });
    expect((await rig.report("i-beat")).result).toMatchObject({ kind: "completed" });
  });
});

describe("heartbeat details", () => {
  it("reach the next attempt, the latest of them, and go with the completion", async () => {
    const resumable = defineActivity("resumable", {
      async run(ctx) {
        if (ctx.attempt === 2) return ctx.lastHeartbeat;
        for (let page = 1; page <= 50; page++) ctx.heartbeat({ page });
        throw new Error("half way");
      },
    });
    await rig.startWorker({ resumable });
    await rig.publishTask({ instanceId: "i-resume", name: "resumable" });
    await rig.report("i-resume");
    await rig.publishTask({ instanceId: "i-resume", name: "resumable", attempt: 2 });
    const second = await rig.report("i-resume", (r) => r.attempt === 2);
    expect(second.result).toEqual({ kind: "completed", output: { json: { page: 50 } } });
    await rig.poll("the details to be gone", async () => {
      const last = await rig.bus.last("KV_heartbeats", "$KV.heartbeats.i-resume.1.1", { leader: true });
      return last === undefined || last.body.length === 0;
    });
  });
});

describe("cancel", () => {
  it("aborts the signal and reports nothing", async () => {
    const reasons: unknown[] = [];
    const waiting = defineActivity("waiting", {
      run: (ctx) =>
        new Promise((_, reject) => {
          ctx.signal.addEventListener("abort", () => {
            reasons.push(ctx.signal.reason);
            reject(new Error("stopped"));
          });
        }),
    });
    const { happenings } = await rig.startWorker({ waiting });
    await rig.publishTask({ instanceId: "i-cancel", name: "waiting", of: 4 });
    await rig.facts.until("the start", () => happenings.find((h) => h.kind === "activity.started"));
    const notice = new TextEncoder().encode(JSON.stringify({ instanceId: "i-cancel", execution: 1, of: 4 }));
    rig.bus.send(rig.names.cancels, new TextEncoder().encode("not a notice"));
    rig.bus.send(rig.names.cancels, notice);
    await rig.untilQueueIsEmpty();
    expect(reasons).toMatchObject([{ code: "cancelled" }]);
    // Cancelled while it waits in the queue: never started at all.
    await rig.publishTask({
      instanceId: "i-cancel",
      name: "waiting",
      of: 4,
      scheduledAt: Date.now() - 60_000,
    });
    await rig.untilQueueIsEmpty();
    expect(happenings.filter((h) => h.kind === "activity.started")).toHaveLength(1);
    expect(rig.reports.filter((r) => r.instanceId === "i-cancel")).toEqual([]);
  });
});

describe("bad messages", () => {
  it("go to DEAD with a reason, and others go on", async () => {
    const fine = defineActivity("fine", { run: () => "fine" });
    const { happenings } = await rig.startWorker({ fine });
    const bodies = ["", "garbage", "{}", `${"[".repeat(10_000)}${"]".repeat(10_000)}`, '{"v":2}', "null"];
    for (const body of bodies) await rig.publishRaw(new TextEncoder().encode(body), "fine");
    await rig.publishRaw(
      Uint8Array.from({ length: 300 }, (_, i) => (i * 7) % 256),
      "fine",
    );
    await rig.publishTask({ instanceId: "i-fine", name: "fine" });
    await rig.report("i-fine");
    await rig.untilQueueIsEmpty();
    const dead = await rig.bus.read(rig.names.deadStream, "dead.activity.>");
    expect(dead).toHaveLength(bodies.length + 1);
    expect(happenings.filter((h) => h.kind === "dead.lettered")).toHaveLength(bodies.length + 1);
  });

  it("reports a task handed out too often as poisoned, and dead-letters it", async () => {
    const poison = defineActivity("poison", { run: () => "never run" });
    const consumer = rig.names.activityConsumer("default", "poison");
    const stream = rig.names.activitiesStream;
    const filter = rig.names.activity("default", "poison");
    await rig.bus.ensureConsumer({ stream, name: consumer, filter, ackWaitMs: 10_000 });
    await rig.publishTask({ instanceId: "i-poison", name: "poison" });
    for (let delivery = 1; delivery <= 2; delivery++) {
      const message = await rig.bus.next(stream, consumer, { expiresMs: 5_000 });
      message?.nak();
    }
    const { happenings } = await rig.startWorker({ poison }, { WORKER_MAX_DELIVERIES: "2" });
    const failure = failureOf(await rig.report("i-poison"));
    expect(failure).toMatchObject({ code: "poisoned", retryable: false });
    await rig.untilQueueIsEmpty();
    expect(happenings.map((h) => h.kind)).toContain("activity.poisoned");
    expect(await rig.bus.read(rig.names.deadStream, "dead.activity.i-poison")).toHaveLength(1);
  });
});

describe("streams", () => {
  it("stores chunks in order before the result, refuses what is too big", async () => {
    const talker = defineActivity("talker", {
      async run(ctx) {
        for (const word of ["a", "b", "c"]) await ctx.stream.write({ word });
        const refused = await ctx.stream.write("x".repeat(300_000)).catch((error: Error) => error);
        void ctx.stream.write("last");
        return "code" in (refused as object) ? (refused as unknown as { code: string }).code : "?";
      },
    });
    await rig.startWorker({ talker });
    await rig.publishTask({ instanceId: "i-talk", name: "talker" });
    expect((await rig.report("i-talk")).result).toMatchObject({ output: { json: "stream_chunk_too_large" } });
    const chunks = await rig.bus.read(rig.names.streamsStream, rig.names.streamsOf("i-talk"));
    const read = chunks?.map((chunk) => StreamChunk.parse(JSON.parse(new TextDecoder().decode(chunk.body))));
    const texts = read?.map(({ chunk }) => ("json" in chunk ? chunk.json : undefined));
    expect(texts).toEqual([{ word: "a" }, { word: "b" }, { word: "c" }, "last"]);
    expect(read?.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  });
});
