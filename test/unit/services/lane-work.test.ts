/** What of a commit goes by the lane, and what is kept for it. */
import { describe, expect, it } from "vitest";
import type { Commit } from "../../../schemas/index.ts";
import type { Lane } from "../../../services/orchestrator/lane/lane.ts";
import { LaneWork } from "../../../services/orchestrator/lane/lane-work.ts";
import type { Answered } from "../../../services/orchestrator/lane/offers.ts";
import { type Delivery, subjects } from "../../../shared/bus/index.ts";
import {
  type Effect,
  Instance,
  type InstanceHost,
  type InstanceState,
  initialState,
  type OpenTask,
} from "../../../shared/replay/index.ts";
import { seededRandom, systemClock } from "../../../shared/runtime/index.ts";

const now = 1_000;
const on = { workerId: "w1", epoch: 7 };

class Rig {
  readonly state: InstanceState = { ...initialState("a"), execution: 1, status: "running" };
  generation = 2;
  readonly seats = { free: 1, isHeld: () => true };
  readonly offered: string[] = [];
  readonly closed = new Set<string>();
  readonly recalled: number[] = [];
  answer: Answered = { v: 1, kind: "taken", workerId: "w1" as never };
  readonly work = new LaneWork({
    instanceId: "a",
    names: subjects(),
    runtime: { clock: systemClock, random: seededRandom(1), announce: () => undefined },
    lane: {
      offers: {
        isOpen: (subject: string) => !this.closed.has(subject),
        offer: async (subject: string) => this.#offered(subject),
        offerTask: async (subject: string) => this.#offered(subject),
      },
      watch: () => undefined,
      unwatch: () => undefined,
    } as unknown as Lane,
    generation: { allows: (generation) => generation <= this.generation },
    seats: this.seats,
    onReport: () => undefined,
    onActivated: () => undefined,
    onRecalled: (of) => void this.recalled.push(of),
  });

  #offered(subject: string): Answered {
    this.offered.push(subject);
    return this.answer;
  }

  task(id: number, more: Partial<OpenTask> = {}): OpenTask {
    const task: OpenTask = {
      id,
      name: "step",
      input: { json: null },
      target: { kind: "queue", queue: "default" as never },
      retry: {} as never,
      timeouts: {},
      byEngine: false,
      scheduledAt: now,
      attempt: 1,
      readyAt: now,
      startedAt: undefined,
      sentEpoch: undefined,
      sentId: undefined,
      interruptions: 0,
      strikes: 0,
      lastError: undefined,
      ...more,
    };
    this.state.tasks.set(id, task);
    return task;
  }

  call(id: number, more: Partial<OpenTask> = {}): OpenTask {
    const target = { kind: "session", sessionId: "s" as never, call: true } as const;
    this.state.sessions.set("s", { type: "held" } as never);
    return this.task(id, { target, sentEpoch: on.epoch, ...more });
  }

  /** Ids of what would go by the lane. */
  plan(...tasks: OpenTask[]): number[] {
    const effects = tasks.map(
      (task): Effect =>
        task.target.kind === "queue" ? { kind: "task", task } : { kind: "call", task, on: on as never },
    );
    this.work.plan(this.state, effects, now);
    return tasks.filter((task) => this.work.isPlanned(task)).map(({ id }) => id);
  }
}

const delivery = (seq: number) => ({ seq }) as Delivery;

const anchored = (): Rig => {
  const rig = new Rig();
  rig.work.applied(delivery(1));
  return rig;
};

describe("goes by the queue", () => {
  it("without a message that stands for it (LANE-1)", () => {
    const rig = new Rig();
    expect(rig.plan(rig.task(2))).toEqual([]);
  });

  it("where the partition has no seat left", () => {
    const rig = anchored();
    rig.seats.free = 0;
    expect(rig.plan(rig.task(2))).toEqual([]);
  });

  it("what has a past, a heartbeat to keep or a time to wait for", () => {
    const rig = anchored();
    const again = rig.task(2, { attempt: 2 });
    const beating = rig.task(3, { timeouts: { heartbeatMs: 1000 } });
    const later = rig.task(4, { readyAt: now + 1 });
    expect(rig.plan(again, beating, later, rig.task(5))).toEqual([5]);
  });

  it("where the lane rests", () => {
    const rig = anchored();
    rig.closed.add("lanes.activities.default.step");
    expect(rig.plan(rig.task(2))).toEqual([]);
  });

  it("what would overtake a call that went by the queue", async () => {
    const rig = anchored();
    rig.call(2); // sent before, and not by the lane
    expect(rig.plan(rig.call(3))).toEqual([]);
    rig.state.tasks.delete(2);
    rig.state.tasks.delete(3);
    expect(rig.plan(rig.call(4), rig.call(5))).toEqual([4, 5]);
  });

  it("the rest of a wide fan-out", () => {
    const rig = anchored();
    const tasks = Array.from({ length: 1100 }, (_, i) => rig.task(i + 2));
    expect(rig.plan(...tasks)).toHaveLength(1000);
    rig.generation = 1; // a worker of 0.1.0 takes one task in a message
    expect(rig.plan(...tasks)).toHaveLength(64);
  });
});

describe("the anchor", () => {
  it("is kept while anything is out, and released with the last", async () => {
    const rig = anchored();
    const first = rig.task(2);
    expect(rig.plan(first)).toEqual([2]);
    expect(await rig.work.send(rig.state, first, new Uint8Array())).toBe(true);
    expect(rig.work.settle(rig.state).kept).toMatchObject({ seq: 1 });
    expect(rig.seats.free).toBe(0);
    // The next turn has no message of its own: the anchor stands for it too.
    rig.work.begin();
    const second = rig.task(3);
    expect(rig.plan(second)).toEqual([3]);
    await rig.work.send(rig.state, second, new Uint8Array());
    rig.state.tasks.delete(2);
    expect(rig.work.settle(rig.state).kept).toMatchObject({ seq: 1 });
    rig.state.tasks.delete(3);
    expect(rig.work.settle(rig.state)).toMatchObject({ kept: undefined, released: { seq: 1 } });
    expect(rig.seats.free).toBe(1);
  });

  it("is not kept for what was refused", async () => {
    const rig = anchored();
    rig.answer = "refused";
    const task = rig.task(2);
    rig.plan(task);
    expect(await rig.work.send(rig.state, task, new Uint8Array())).toBe(false);
    expect(rig.work.wasLost(task)).toBe(false);
    expect(rig.work.settle(rig.state).kept).toBeUndefined();
  });

  it("is not used by an owner whose lease is over: its successor may have sent the work", async () => {
    const rig = anchored();
    const task = rig.task(2);
    rig.plan(task);
    rig.seats.isHeld = () => false;
    expect(await rig.work.send(rig.state, task, new Uint8Array())).toBe(false);
    expect(rig.offered).toEqual([]);
  });

  it("what nobody answered for may have been begun", async () => {
    const rig = anchored();
    rig.answer = "unsure";
    const task = rig.task(2);
    rig.plan(task);
    expect(await rig.work.send(rig.state, task, new Uint8Array())).toBe(false);
    expect(rig.work.wasLost(task)).toBe(true);
  });

  it("what a fenced turn meant to send is forgotten", () => {
    const rig = anchored();
    const task = rig.task(2);
    expect(rig.plan(task)).toEqual([2]);
    rig.work.begin();
    expect(rig.work.isPlanned(task)).toBe(false);
  });

  it("a call under another epoch is not the one that is out", async () => {
    const rig = anchored();
    const call = rig.call(2);
    rig.plan(call);
    await rig.work.send(rig.state, call, new Uint8Array());
    expect(rig.work.isOut(rig.state, call)).toBe(true);
    call.sentEpoch = 8;
    expect(rig.work.isOut(rig.state, call)).toBe(false);
    expect(rig.work.settle(rig.state).kept).toBeUndefined();
  });

  it("is kept until the last of several recalled tasks is in the queue", async () => {
    const rig = anchored();
    const tasks = [rig.task(2), rig.task(3)];
    rig.plan(...tasks);
    for (const task of tasks) await rig.work.send(rig.state, task, new Uint8Array());
    rig.work.settle(rig.state);
    for (const of of [2, 3]) rig.work.recall({ execution: 1, of, attempt: 1 }, "returned");
    expect(rig.recalled).toEqual([2, 3]);
    rig.work.resent([2]);
    expect(rig.work.settle(rig.state).kept).toMatchObject({ seq: 1 });
    expect(tasks.map((task) => rig.work.wasLost(task))).toEqual([false, true]);
    rig.work.resent([3]);
    expect(rig.work.settle(rig.state)).toMatchObject({ kept: undefined, released: { seq: 1 } });
  });

  it("takes one seat, and gives it back where nothing came of it", async () => {
    const rig = anchored();
    rig.answer = "refused";
    const task = rig.task(2);
    rig.plan(task);
    expect(rig.seats.free).toBe(0);
    await rig.work.send(rig.state, task, new Uint8Array());
    rig.work.settle(rig.state);
    expect(rig.seats.free).toBe(1);
  });
});

it("is known again however many messages came since, also over continue-as-new", async () => {
  const host = { app: { orchestrations: new Map() } } as unknown as InstanceHost;
  const instance = new Instance("a", host);
  const started = { id: 1, kind: "instance.started", name: "x", input: { json: null } };
  const commit = {
    v: 1,
    commitId: "c",
    instanceId: "a",
    execution: 2,
    at: 1,
    inbox: [],
    anchor: 10,
    deferred: true,
  };
  await instance.load([{ ...commit, events: [started] } as unknown as Commit]);
  expect(instance.state.applied.has(10)).toBe(true);
  expect(instance.isBehindLastCommit(10)).toBe(true);
});
