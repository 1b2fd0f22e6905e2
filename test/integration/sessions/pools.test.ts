/** Members of a pool on real workers, without an orchestrator: the queue is filled by hand. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { encode } from "../../../shared/bus/index.ts";
import { call, defineSession } from "../../../shared/definitions/index.ts";
import { SessionRig } from "../../support/worlds/session-rig.ts";

let rig: SessionRig;
beforeAll(async () => {
  rig = await SessionRig.start();
});
afterAll(() => rig.stop());
afterEach(async () => {
  letGo();
  await rig.stopWorkers();
});

let serial = 0;
/** A pool for each test, so that none finds the calls of another. */
const fresh = (): { pool: string; member: (id: string, more?: object) => ReturnType<SessionRig["open"]> } => {
  const pool = `pool${++serial}`;
  return {
    pool,
    member: (id, more = {}) =>
      rig.open("model", `${pool}-${id}`, { metadata: { "holdfast-pool": pool }, ...more }),
  };
};

let letGo: () => void = () => undefined;
let gate = Promise.resolve();
const shut = () => {
  gate = new Promise((resolve) => {
    letGo = resolve;
  });
};

const ran: string[] = [];
const model = defineSession("model", {
  init: () => ({}),
  calls: {
    ask: call({
      run: async (_state, input: string, ctx) => {
        ran.push(`${ctx.session.id} ${input}`);
        await Promise.race([
          gate,
          new Promise((_resolve, reject) =>
            ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)),
          ),
        ]);
        return `${ctx.session.id} ${input}`;
      },
    }),
    many: call({
      batch: { maxSize: 8, maxDelay: "200ms" },
      run: (_state, inputs: string[]) => inputs.map((input) => input.toUpperCase()),
    }),
  },
});

const pendingOf = async (pool: string) => {
  const consumers = await rig.bus.consumers(rig.names.activitiesStream);
  const own = consumers.find(({ name }) => name === rig.names.poolConsumer(pool));
  return { waiting: own?.pending, out: own?.ackPending };
};
const untilSettled = (pool: string) =>
  rig.poll("an empty queue", async () => {
    const left = await rig.bus.read(rig.names.activitiesStream, rig.names.poolTasks(pool));
    return left?.length === 0;
  });
const started = (member: string) => rig.happening("call.started", (one) => one.sessionId === member);

// The type has a batching call of 8, so a member takes up to 8 at once.
const capacity = 8;

describe("calls of a pool", () => {
  it("are answered by whoever takes them, for every instance, and are gone then", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    await member("m1");
    await member("m2");
    const asked = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        rig.ask(pool, { name: "ask", input: `q${i}`, instanceId: `i${i % 4}` }),
      ),
    );
    const answers = await Promise.all(asked.map((of) => rig.output(of)));
    expect(new Set(answers.map((answer) => String(answer).split(" ")[0])).size).toBe(2);
    await untilSettled(pool);
    const told = rig.calls.find((report) => report.of === asked[0]);
    expect(told?.epoch, "reports carry the epoch").toBeGreaterThan(0);
  });

  it("of many instances run together as one batch", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    await member("m1");
    const asked = await Promise.all(
      Array.from({ length: capacity }, (_, i) =>
        rig.ask(pool, { name: "many", input: `q${i}`, instanceId: `many${i}`, of: 1 }),
      ),
    );
    expect(asked).toHaveLength(capacity);
    const { size } = await rig.happening("batch.ran", (one) => one.type === "model");
    expect(size).toBeGreaterThan(1);
    await untilSettled(pool);
    for (let i = 0; i < capacity; i++) {
      const report = rig.calls.find(({ instanceId }) => instanceId === `many${i}`);
      expect(report?.result).toMatchObject({ kind: "completed", output: { json: `Q${i}` } });
    }
  });

  it("wait in the queue, not behind a member that has enough", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    await member("m1");
    shut();
    const asked = [];
    for (let i = 0; i < capacity + 5; i++) asked.push(await rig.ask(pool, { name: "ask", input: `q${i}` }));
    await rig.poll("all it can use is out", async () => (await pendingOf(pool)).out === capacity);
    expect((await pendingOf(pool)).waiting).toBe(5);
    const grow = await rig.until("a word to the keeper", () =>
      rig.signals.find(({ instanceId }) => instanceId === `pool-${pool}`),
    );
    expect(grow.payload).toMatchObject({ kind: "grow", waitedMs: expect.any(Number) });
    letGo();
    await Promise.all(asked.map((of) => rig.output(of)));
    await untilSettled(pool);
  });
});

describe("a member that ends", () => {
  it.each(["close", "evict", "drain"] as const)(
    "by %s gives back what it has, and others do it",
    async (kind) => {
      await rig.worker({ model });
      const { pool, member } = fresh();
      const on = await member("m1");
      shut();
      const asked = [];
      for (let i = 0; i < 3; i++) asked.push(await rig.ask(pool, { name: "ask", input: `${kind}${i}` }));
      await started(`${pool}-m1`);
      await member("m2");
      await rig.work(on.workerId, `${pool}-m1`, { kind, epoch: on.epoch } as never);
      await started(`${pool}-m2`);
      letGo();
      const answers = await Promise.all(asked.map((of) => rig.output(of)));
      const members = answers.map((answer) => String(answer).split(" ")[0]);
      // Drained, it may finish what runs; otherwise that too is done elsewhere.
      expect(members[0]).toBe(`${pool}-${kind === "drain" ? "m1" : "m2"}`);
      expect(members.slice(1)).toEqual([`${pool}-m2`, `${pool}-m2`]);
      await untilSettled(pool);
    },
  );

  it("parks when it idles, not while it has work", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    shut();
    const of = await rig.ask(pool, { name: "ask", input: "long" });
    const before = performance.now();
    await member("m1", { idleTimeoutMs: 300 });
    await started(`${pool}-m1`);
    await rig.poll("longer than it may idle", async () => performance.now() - before > 900);
    expect(rig.kinds(`${pool}-m1`)).not.toContain("parked");
    letGo();
    await rig.output(of);
    await rig.heard(`${pool}-m1`, "parked");
    const { waiting } = await pendingOf(pool);
    expect(waiting).toBe(0);
  });
});

describe("calls that should not run", () => {
  it("are dropped by a notice, waiting or running, and nothing is told", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    await member("m1");
    shut();
    const asked = [];
    for (let i = 0; i < 3; i++) {
      asked.push(await rig.ask(pool, { name: "ask", input: `c${i}`, instanceId: "quitter" }));
    }
    await started(`${pool}-m1`);
    for (const of of asked)
      rig.bus.send(rig.names.cancels, encode({ instanceId: "quitter", execution: 1, of }));
    await untilSettled(pool);
    expect(rig.calls.filter(({ instanceId }) => instanceId === "quitter")).toEqual([]);
    letGo();
    expect(await rig.output(await rig.ask(pool, { name: "ask", input: "next" }))).toBe(`${pool}-m1 next`);
  });

  it("are set aside where they cannot be read; a call the type does not have fails in words", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    await member("m1");
    await rig.bus.publish(rig.names.activity(`pool-${pool}`, "ask"), encode({ v: 99 }));
    await rig.happening("dead.lettered", (one) => one.what === "activity" && one.id === pool);
    const unknown = await rig.ask(pool, { name: "nothing" });
    expect(await rig.result(unknown)).toMatchObject({ kind: "failed", error: { code: "unknown_call" } });
    await untilSettled(pool);
  });

  it("are acknowledged when they come again after they were answered", async () => {
    await rig.worker({ model });
    const { pool, member } = fresh();
    await member("m1");
    const of = await rig.ask(pool, { name: "ask", input: "once" });
    await rig.output(of);
    await rig.ask(pool, { name: "ask", input: "once", of });
    await untilSettled(pool);
    expect(ran.filter((one) => one === `${pool}-m1 once`)).toHaveLength(1);
  });
});

it("members of a pool are spread over workers", async () => {
  const [a, b] = [await rig.worker({ model }), await rig.worker({ model })];
  const { member } = fresh();
  const [first, second] = await Promise.all([member("m1"), member("m2")]);
  expect(new Set([first.workerId, second.workerId])).toEqual(new Set([a.workerId, b.workerId]));
});
