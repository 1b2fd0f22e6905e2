import { expect } from "vitest";
import { defineOrchestration } from "../../../../shared/definitions/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import {
  activated,
  checkpointed,
  claimed,
  completed,
  failed,
  held,
  initFailed,
  lost,
  signal,
  start,
} from "../../../support/worlds/instance-messages.ts";

import { active, chat, lostError, pause, uses } from "./chat-story.ts";

const calls = (turn: { effects: readonly { kind: string }[] }) =>
  turn.effects.filter((effect) => effect.kind === "call");

scenario(
  "fail: every open call ends with SessionLostError, and so does the next at once",
  uses({}),
  async (bench) => {
    await active(bench);
    const { events, effects } = await bench.turn(lost("s", held(1)));
    expect(events.map((event) => event.kind)).toEqual(["session.lost", "activity.failed", "activity.failed"]);
    expect(effects).toEqual([{ kind: "register-session", sessionId: "s" }]);
    const scheduled = bench.kinds.filter((kind) => kind === "activity.scheduled").length;
    await bench.turn(signal("more"));
    expect(bench.output).toEqual({ first: [lostError, lostError], more: lostError, state: "lost" });
    expect(bench.kinds.filter((kind) => kind === "activity.scheduled")).toHaveLength(scheduled);
  },
);

scenario("a loss is told once, whoever tells it", uses({ onLost: "reclaim" }), async (bench) => {
  await active(bench);
  const { verdicts } = await bench.turn(
    lost("s", held(1)),
    lost("s", held(1), "crashed"),
    lost("s", { attachment: 1 }),
  );
  expect(verdicts).toEqual(["facts", "fenced", "fenced"]);
  const { verdicts: other } = await bench.turn(
    activated("s", held(2)),
    lost("s", { attachment: 2, epoch: 99 }),
  );
  expect(other).toEqual(["facts", "fenced"]);
});

scenario(
  "reclaim: claimed anew, and the calls go to the new holder",
  uses({ onLost: "reclaim" }),
  async (bench) => {
    const [a, b] = (await active(bench)) as [number, number];
    await bench.turn(completed(b, 2, { epoch: 10 }));
    const { events, effects } = await bench.turn(lost("s", held(1), "crashed", "exit code 9"));
    expect(events).toMatchObject([
      { kind: "session.lost", on: held(1), reason: "crashed", detail: "exit code 9" },
      {
        kind: "activity.attempt_failed",
        of: a,
        attempt: 1,
        retryAt: bench.now,
        error: { code: "session_lost" },
      },
      { kind: "session.requested", attachment: 2, restore: false, deadlineAt: bench.now + 30_000 },
    ]);
    expect(effects.map((effect) => effect.kind)).toEqual([
      "register-session",
      "schedule",
      "register-session",
      "claim",
    ]);
    const again = await bench.turn(activated("s", held(2)));
    expect(calls(again)).toMatchObject([{ task: { id: a, attempt: 2 }, on: held(2) }]);
    await bench.turn(completed(a, 1, { epoch: 20, attempt: 2 }));
    await bench.turn(signal("more"));
    await bench.turn(completed(bench.task("say"), 3, { epoch: 20 }));
    expect(bench.output).toEqual({ first: [1, 2], more: 3, state: "active" });
  },
);

scenario(
  "what an old epoch says is fenced, on whichever attempt",
  uses({ onLost: "reclaim" }),
  async (bench) => {
    const [a, b] = (await active(bench)) as [number, number];
    expect((await bench.turn(completed(a, 1), completed(a, 1, { epoch: 9 }))).verdicts).toEqual([
      "fenced",
      "fenced",
    ]);
    await bench.turn(lost("s", held(1)));
    const waiting = await bench.turn(
      completed(a, 1, { epoch: 10 }),
      completed(a, 1, { epoch: 10, attempt: 2 }),
      failed(b, {}, { epoch: 10, attempt: 2 }),
      completed(b, 1, { attempt: 2 }),
    );
    expect(waiting.verdicts).toEqual(["fenced", "fenced", "fenced", "fenced"]);
    await bench.turn(activated("s", held(2)));
    const after = await bench.turn(
      completed(a, 1, { epoch: 10, attempt: 2 }),
      completed(a, 7, { epoch: 20, attempt: 2 }),
    );
    expect(after.verdicts).toEqual(["fenced", "facts"]);
  },
);

scenario(
  "reclaim: a call that loses its session too often gives up, the others go on",
  uses({ onLost: "reclaim", recovery: { maxAutoRetries: 1 } }),
  async (bench) => {
    const [a, b] = (await active(bench)) as [number, number];
    await bench.turn(lost("s", held(1)));
    await bench.turn(activated("s", held(2)));
    expect((await bench.turn(completed(b, 2, { epoch: 20, attempt: 2 }))).verdicts).toEqual(["fenced"]);
    const { events } = await bench.turn(lost("s", held(2)));
    expect(events.map((event) => event.kind)).toEqual([
      "session.lost",
      "activity.failed",
      "activity.attempt_failed",
      "session.requested",
    ]);
    expect(bench.open("say")).toEqual([b]);
    await bench.turn(activated("s", held(3)));
    await bench.turn(completed(b, 2, { epoch: 30, attempt: 3 }));
    await bench.turn(signal("more"));
    await bench.turn(completed(bench.task("say"), 3, { epoch: 30 }));
    expect(bench.output).toMatchObject({ first: [{ code: "poisoned" }, 2], more: 3 });
    expect(a).toBeLessThan(b);
  },
);

scenario(
  "calls wait while nobody holds the session, and are sent once",
  uses({ onLost: "reclaim" }),
  async (bench) => {
    await active(bench);
    for (const of of bench.open("say")) await bench.turn(completed(of, 1, { epoch: 10 }));
    await bench.turn(lost("s", held(1)));
    const waits = await bench.turn(signal("more"));
    expect(calls(waits)).toEqual([]);
    expect(calls(await bench.turn(claimed("s", held(2))))).toEqual([]);
    expect(calls(await bench.turn(activated("s", held(2))))).toHaveLength(1);
    expect(calls(await bench.turn(activated("s", held(2))))).toEqual([]);
  },
);

scenario(
  "reclaim: init that fails on the new holder counts anew",
  uses({ onLost: "reclaim", maxInitAttempts: 2 }),
  async (bench) => {
    await bench.turn(start("uses"));
    await bench.turn(initFailed("s", 1));
    await bench.turn(activated("s", held(2)));
    await bench.turn(lost("s", held(2)));
    await bench.turn(initFailed("s", 3));
    expect(bench.phase("s")).toBe("opening");
    await bench.turn(initFailed("s", 4));
    await bench.turn(signal("more"));
    expect(bench.output).toMatchObject({
      first: [{ code: "session_init_failed" }, { code: "session_init_failed" }],
      more: { code: "session_unusable" },
      state: "failed",
    });
  },
);

const retried = {
  chat,
  retried: defineOrchestration("retried", {
    async run(ctx) {
      const session = await ctx.openSession(chat, { id: "s", onLost: "reclaim" });
      return await session.say("x", { retry: { maxAttempts: 2, initialDelay: 50 } });
    },
  }),
};

scenario("attempts cut short by a loss do not use up the call's own", retried, async (bench) => {
  await bench.turn(start("retried"));
  await bench.turn(activated("s", held(1)));
  const of = bench.task("say");
  await bench.turn(lost("s", held(1)));
  await bench.turn(activated("s", held(2)));
  await bench.turn(lost("s", held(2)));
  await bench.turn(activated("s", held(3)));
  const { events, effects } = await bench.turn(failed(of, {}, { epoch: 30, attempt: 3 }));
  expect(events).toMatchObject([{ kind: "activity.attempt_failed", retryAt: bench.now + 50 }]);
  expect(effects).toMatchObject([{ kind: "call", task: { attempt: 4, readyAt: bench.now + 50 } }]);
  await bench.turn(completed(of, "ok", { epoch: 30, attempt: 4 }));
  expect(bench.output).toBe("ok");
});

scenario("a loss while a call backs off hands it to the next holder", retried, async (bench) => {
  await bench.turn(start("retried"));
  await bench.turn(activated("s", held(1)));
  const of = bench.task("say");
  await bench.turn(failed(of, {}, { epoch: 10 }));
  await bench.turn(lost("s", held(1)));
  expect(calls(await bench.turn(activated("s", held(2))))).toMatchObject([{ task: { id: of, attempt: 3 } }]);
  await bench.turn(completed(of, "ok", { epoch: 20, attempt: 3 }));
  expect(bench.output).toBe("ok");
});

scenario(
  "restore: the next holder begins from the latest checkpoint",
  uses({ onLost: "restore" }),
  async (bench) => {
    const [a] = (await active(bench)) as [number];
    const { verdicts } = await bench.turn(
      checkpointed("s", held(1), 1),
      checkpointed("s", held(1), 2),
      checkpointed("s", held(1), 2),
      checkpointed("s", held(1, 7), 3),
    );
    expect(verdicts).toEqual(["facts", "facts", "repeated", "fenced"]);
    const { effects } = await bench.turn(lost("s", held(1)));
    expect(effects).toContainEqual(
      expect.objectContaining({
        kind: "claim",
        restore: true,
        session: expect.objectContaining({ checkpoint: expect.objectContaining({ calls: 2 }) }),
      }),
    );
    const again = await bench.turn(activated("s", held(2), { restored: true }));
    // The one that was running goes first, and alone.
    expect(calls(again)).toMatchObject([{ task: { id: a } }]);
  },
);

scenario(
  "restore: a holder that died while restoring does not lose the checkpoint",
  uses({ onLost: "restore" }),
  async (bench) => {
    await active(bench);
    await bench.turn(checkpointed("s", held(1)));
    await bench.turn(lost("s", held(1)));
    const { events } = await bench.turn(claimed("s", held(2)), lost("s", held(2), "crashed"));
    expect(events.at(-1)).toMatchObject({ kind: "session.requested", attachment: 3, restore: true });
  },
);

scenario("restore without a checkpoint begins anew", uses({ onLost: "restore" }), async (bench) => {
  await active(bench);
  const { events } = await bench.turn(lost("s", held(1)));
  expect(events.at(-1)).toMatchObject({ kind: "session.requested", restore: false });
});

scenario(
  "drained with a checkpoint continues elsewhere, even under fail (S13)",
  uses({ recovery: { maxAutoRetries: 0 } }),
  async (bench) => {
    const [a, b] = (await active(bench)) as [number, number];
    await bench.turn(completed(a, 1, { epoch: 10 }));
    const { events } = await bench.turn(checkpointed("s", held(1)), lost("s", held(1), "drained"));
    expect(events.map((event) => event.kind)).toEqual([
      "session.checkpointed",
      "session.lost",
      "activity.attempt_failed",
      "session.requested",
    ]);
    expect(events.at(-1)).toMatchObject({ restore: true });
    await bench.turn(activated("s", held(2), { restored: true }));
    await bench.turn(completed(b, 2, { epoch: 20, attempt: 2 }));
    await bench.turn(signal("more"));
    await bench.turn(completed(bench.task("say"), 3, { epoch: 20 }));
    expect(bench.output).toEqual({ first: [1, 2], more: 3, state: "active" });
  },
);

scenario("drained without one is lost under fail", uses({}), async (bench) => {
  await active(bench);
  await bench.turn(lost("s", held(1), "drained"));
  await bench.turn(signal("more"));
  expect(bench.output).toMatchObject({ first: [{ reason: "drained" }, { reason: "drained" }] });
});

scenario(
  "defect 21: a result that is recorded before the loss counts, though the state behind it is gone",
  uses({ onLost: "reclaim" }),
  async (bench) => {
    const [a, b] = (await active(bench)) as [number, number];
    // Reported when the bus came back, under the epoch that the history still knows; then the loss.
    const { verdicts } = await bench.turn(completed(a, "done", { epoch: 10 }), lost("s", held(1)));
    expect(verdicts).toEqual(["facts", "facts"]);
    // Reported after the loss: ignored, by its attempt as well as by its epoch, and the call is made again.
    const late = await bench.turn(
      completed(b, "late", { epoch: 10 }),
      completed(b, "late", { epoch: 10, attempt: 2 }),
    );
    expect(late.verdicts).toEqual(["fenced", "fenced"]);
    expect(calls(await bench.turn(activated("s", held(2))))).toMatchObject([{ task: { id: b } }]);
    expect((await bench.turn(completed(b, "late", { epoch: 20, attempt: 1 }))).verdicts).toEqual(["late"]);
    await bench.turn(completed(b, "again", { epoch: 20, attempt: 2 }));
    await bench.turn(signal("more"));
    await bench.turn(completed(bench.task("say"), 3, { epoch: 20 }));
    expect(bench.output).toMatchObject({ first: ["done", "again"] });
  },
);

scenario("an owner that kept its state attaches again under a new epoch (S14)", uses({}), async (bench) => {
  const [a, b] = (await active(bench)) as [number, number];
  const again = held(2, 25, "w1");
  const turn = await bench.turn(activated("s", again, { warm: true }));
  expect(calls(turn)).toMatchObject([
    { task: { id: a, attempt: 1 }, on: again },
    { task: { id: b, attempt: 1 }, on: again },
  ]);
  const { verdicts } = await bench.turn(
    completed(a, "old", { epoch: 10 }),
    lost("s", held(1)),
    completed(a, 1, { epoch: 25 }),
    completed(b, 2, { epoch: 25 }),
    activated("s", again, { warm: true }),
  );
  expect(verdicts).toEqual(["fenced", "fenced", "facts", "facts", "repeated"]);
});

scenario(
  "also when the instance had not heard of the attachment before: the session is open",
  uses({}),
  async (bench) => {
    await bench.turn(start("uses"));
    const again = held(2, 25, "w1");
    const { verdicts } = await bench.turn(activated("s", again, { warm: true }));
    expect(verdicts).toEqual(["facts"]);
    expect(bench.phase("s")).toBe("active");
    const late = await bench.turn(lost("s", held(1)), activated("s", held(1)));
    expect(late.verdicts).toEqual(["fenced", "fenced"]);
    for (const call of bench.open("say")) await bench.turn(completed(call, 1, { epoch: 25 }));
    await bench.turn(signal("more"));
    await bench.turn(completed(bench.task("say"), 9, { epoch: 25 }));
    expect(bench.output).toEqual({ first: [1, 1], more: 9, state: "active" });
  },
);

scenario(
  "also when the loss was told first, before anybody else was found",
  uses({ onLost: "reclaim" }),
  async (bench) => {
    await active(bench);
    await bench.turn(lost("s", held(1)));
    const again = held(2, 25, "w1");
    expect(calls(await bench.turn(activated("s", again, { warm: true })))).toHaveLength(1);
    expect(bench.phase("s")).toBe("active");
  },
);

scenario(
  "also under fail: what was told as lost is there again for the next call",
  uses({}),
  async (bench) => {
    await active(bench);
    await bench.turn(lost("s", held(1)));
    await bench.turn(activated("s", held(2, 25, "w1"), { warm: true }));
    await bench.turn(signal("more"));
    await bench.turn(completed(bench.task("say"), 9, { epoch: 25 }));
    expect(bench.output).toEqual({ first: [lostError, lostError], more: 9, state: "active" });
  },
);

scenario("one that is not warm has no business coming back", uses({}), async (bench) => {
  await active(bench);
  expect((await bench.turn(activated("s", held(2)))).verdicts).toEqual(["fenced"]);
});

const opensTwice = {
  chat,
  pause,
  uses: defineOrchestration("uses", {
    async run(ctx) {
      const first = await ctx.openSession(chat, { id: "s" });
      await first.say("hello").catch(() => undefined);
      return (await ctx.openSession(chat, { id: "s" })).info.attachment;
    },
  }),
};

scenario("an attachment that died before it could tell of itself is spent", opensTwice, async (bench) => {
  await active(bench);
  const { verdicts, effects } = await bench.turn(lost("s", { attachment: 2 }), lost("s", { attachment: 2 }));
  expect(verdicts[0]).toBe("facts");
  expect(effects).toContainEqual(expect.objectContaining({ kind: "claim", attachment: 3 }));
  expect((await bench.turn(lost("s", { attachment: 2 }))).verdicts, "not the loss of the next").toEqual([
    "fenced",
  ]);
  await bench.turn(activated("s", held(3)));
  expect(bench.output).toBe(3);
});

scenario(
  "the loss of an attachment that the holder took by itself may be heard before that of the one it was asked for",
  uses({ onLost: "reclaim" }),
  async (bench) => {
    await bench.turn(start("uses"));
    // Claimed as attachment 1, attached again as 2; both are over, and nothing of it was reported.
    const { verdicts, effects } = await bench.turn(
      lost("s", { attachment: 2 }),
      lost("s", { attachment: 1 }),
    );
    expect(verdicts).toEqual(["facts", "fenced"]);
    expect(effects).toContainEqual(expect.objectContaining({ kind: "claim", attachment: 3 }));
    expect((await bench.turn(activated("s", held(3)))).verdicts).toEqual(["facts"]);
  },
);
