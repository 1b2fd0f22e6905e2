import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ActivityTask } from "../../../schemas/index.ts";
import { CallQueue, type QueuedCall } from "../../../services/worker/sessions/calls/call-queue.ts";

const queued = (of: number, name: string, arrivedAt = 0): QueuedCall => ({
  task: { of, name } as ActivityTask,
  call: true,
  arrivedAt,
});
const rule = { maxSize: 3, maxDelayMs: 10 };
const batching = () => new CallQueue(({ task }) => (task.name === "many" ? rule : undefined));
const ofs = (calls: readonly QueuedCall[]) => calls.map((call) => call.task.of);

describe("calls waiting for their turn", () => {
  it("go one by one in order where nothing batches", () => {
    const queue = batching();
    for (const of of [1, 2]) queue.add(queued(of, "one"));
    expect(queue.popTurn(0)).toMatchObject({ kind: "run", calls: [{ task: { of: 1 } }] });
    expect(queue.popTurn(0)).toMatchObject({ kind: "run", calls: [{ task: { of: 2 } }] });
    expect(queue.popTurn(0)).toEqual({ kind: "empty" });
  });

  it("wait for company until the batch is full, its oldest has waited enough, or another call is behind", () => {
    const queue = batching();
    queue.add(queued(1, "many", 100));
    expect(queue.look(104)).toEqual({ kind: "wait", ms: 6 });
    expect(queue.look(110).kind).toBe("run");
    queue.add(queued(2, "one", 101));
    expect(queue.look(102)).toMatchObject({ kind: "run", calls: [{ task: { of: 1 } }] });
    const full = batching();
    for (const of of [1, 2, 3, 4]) full.add(queued(of, "many"));
    const turn = full.popTurn(0);
    expect(turn.kind === "run" ? ofs(turn.calls) : []).toEqual([1, 2, 3]);
    expect(full.look(0)).toEqual({ kind: "wait", ms: 10 });
  });

  it("never change their order, never mix names, never exceed the size", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("one", "many", "other"), { maxLength: 30 }), (names) => {
        const queue = batching();
        for (const [index, name] of names.entries()) queue.add(queued(index, name));
        const taken: number[] = [];
        for (let turn = queue.popTurn(1000); turn.kind === "run"; turn = queue.popTurn(1000)) {
          expect(new Set(turn.calls.map((call) => call.task.name)).size).toBe(1);
          expect(turn.calls.length).toBeLessThanOrEqual(turn.calls[0].task.name === "many" ? 3 : 1);
          taken.push(...ofs(turn.calls));
        }
        expect(taken).toEqual(names.map((_, index) => index));
      }),
    );
  });

  it("can be taken back", () => {
    const queue = batching();
    for (const of of [1, 2, 3]) queue.add(queued(of, "one"));
    expect(ofs(queue.remove((call) => call.task.of === 2))).toEqual([2]);
    expect(queue.size).toBe(2);
    queue.clear();
    expect(queue.size).toBe(0);
  });
});
