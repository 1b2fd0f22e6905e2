import { expect, test } from "vitest";
import type { Commit, HistoryEvent } from "../../schemas/index.ts";
import { collectApp, defineActivity, defineOrchestration } from "../../shared/definitions/index.ts";
import {
  type Effect,
  type InboxMessage,
  Instance,
  type InstanceHost,
  installGuards,
} from "../../shared/replay/index.ts";

installGuards();

const add = defineActivity("add", { run: async (_ctx, { a, b }: { a: number; b: number }) => a + b });
const sum = defineOrchestration("sum", {
  async run(ctx, input: { n: number }) {
    let total = 0;
    for (let i = 1; i <= input.n; i++) total = await ctx.run(add, { a: total, b: i });
    return total;
  },
});
const raced = defineOrchestration("raced", {
  async run(ctx) {
    const winner = await Promise.race([ctx.run(add, { a: 1, b: 1 }), ctx.sleep("1h").then(() => "late")]);
    return { winner, at: Date.now(), id: crypto.randomUUID() };
  },
});
const bad = defineOrchestration("bad", {
  async run(ctx) {
    await new Promise((resolve) => process.nextTick(() => resolve(1)));
    await new Promise(() => undefined);
    return ctx.now();
  },
});

const host: InstanceHost = {
  app: collectApp({ add, sum, raced, bad }),
  payloads: { inlineBytes: 1e6, store: async (p) => p, fetch: async () => undefined },
  placement: { whyUnclaimed: () => "nobody" },
  log: () => undefined,
};

class Bench {
  instance = new Instance("i1", host);
  commits: Commit[] = [];
  now = 1_000;
  async turn(...messages: InboxMessage[]): Promise<{ events: HistoryEvent[]; effects: Effect[] }> {
    this.now += 10;
    const facts: HistoryEvent[] = [];
    const effects: Effect[] = [];
    for (const message of messages) this.instance.take(message, this.now, facts, effects);
    const turn = await this.instance.finish(facts, effects, this.now);
    if (turn.events.length > 0) {
      this.commits.push({
        v: 1,
        commitId: "c",
        instanceId: "i1" as never,
        execution: this.instance.state.execution,
        at: this.now,
        inboxSeq: 0,
        events: turn.events,
        ...(turn.deferred ? { deferred: true as const } : {}),
      });
    }
    return turn;
  }
  async reload() {
    this.instance = new Instance("i1", host);
    await this.instance.load(this.commits);
  }
}

const report = (of: number, output: unknown): InboxMessage => ({
  kind: "activity",
  report: {
    v: 1,
    execution: 1,
    of,
    attempt: 1,
    workerId: "w" as never,
    result: { kind: "completed", output: { json: output } },
  },
});

test.each([false, true])("runs a sequence, always replaying: %s", async (always) => {
  const bench = new Bench();
  const first = await bench.turn({ kind: "start", name: "sum", input: { json: { n: 3 } } });
  expect(first.events.map((e) => e.kind)).toEqual(["instance.started", "activity.scheduled"]);
  expect(first.effects.map((e) => e.kind)).toEqual(["summary", "task"]);
  let of = 2;
  for (const output of [1, 3, 6]) {
    if (always) await bench.reload();
    expect(bench.instance.parked).toBeUndefined();
    const { events } = await bench.turn(report(of, output));
    of = events.at(-1)?.id ?? 0;
  }
  expect(bench.instance.state.status).toBe("completed");
  expect(bench.instance.state.output).toEqual({ json: 6 });
  const ids = bench.commits.flatMap((c) => c.events.map((e) => e.id));
  expect(ids).toEqual(ids.map((_, i) => i + 1));
});

test("the loser of a race is cancelled, time and uuid replay", async () => {
  const bench = new Bench();
  await bench.turn({ kind: "start", name: "raced", input: { json: null } });
  const { events } = await bench.turn(report(2, 2));
  expect(events.map((e) => e.kind)).toEqual(["activity.completed", "instance.completed"]);
});

test("awaiting something not durable parks", async () => {
  const bench = new Bench();
  const turn = await bench.turn({ kind: "start", name: "bad", input: { json: null } });
  expect(bench.instance.parked?.code).toBe("non_durable_await");
  expect(turn.events.map((e) => e.kind)).toEqual(["instance.started"]);
  await bench.reload();
  expect(bench.instance.parked).toBeUndefined(); // unseen until the next turn
});
