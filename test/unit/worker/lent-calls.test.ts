/** Every call that was lent by a queue is settled once, whatever happens to the session it was lent to (CALL-4). */
import { beforeEach, describe, expect, it } from "vitest";
import { ActivityTask } from "../../../schemas/index.ts";
import type { HostSession, Item } from "../../../services/worker/hosts/index.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { Calls } from "../../../services/worker/sessions/calls/calls.ts";
import {
  defaultTiming,
  type SessionDeps,
  type SessionTiming,
} from "../../../services/worker/sessions/session-deps.ts";
import { Slots } from "../../../services/worker/slots.ts";
import { Payloads, type PublishOptions, type PublishOutcome, subjects } from "../../../shared/bus/index.ts";
import { call, defineSession, type SessionView } from "../../../shared/definitions/index.ts";
import { SessionLostError } from "../../../shared/errors/index.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

const model = defineSession("model", {
  init: () => ({}),
  calls: {
    ask: call({ run: () => 0 }),
    many: call({ batch: { maxSize: 3, maxDelay: 5 }, run: (_s, i) => i }),
  },
});

class Rig {
  readonly clock = new SimulatedClock();
  readonly settled: string[] = [];
  readonly ran: unknown[][] = [];
  readonly reported: { msgId: string | undefined; kind: string }[] = [];
  readonly fence = new AbortController();
  mayReport = true;
  /** How often the right turned out to be over. */
  fenced = 0;
  /** What the user's code does with a run; by default it answers. */
  code: (inputs: unknown[], signal: AbortSignal) => Promise<Item[]> = async (inputs) =>
    inputs.map((value) => ({ ok: true, value }));
  publish: () => PublishOutcome = () => ({ kind: "stored", seq: 1, duplicate: false });
  readonly calls: Calls;
  /** Resolves when the state is no longer trusted. */
  readonly hung: Promise<string>;

  constructor(timing: Partial<SessionTiming> = {}) {
    let onHung: (detail: string) => void = () => undefined;
    this.hung = new Promise((resolve) => {
      onHung = resolve;
    });
    const bus = {
      publish: async (_subject: string, body: Uint8Array, options?: PublishOptions) => {
        const { result } = JSON.parse(new TextDecoder().decode(body));
        this.reported.push({ msgId: options?.msgId, kind: result.kind });
        return this.publish();
      },
    };
    const random = seededRandom(1);
    const settings = { nodeId: "n", resourceId: undefined, buildId: "b" };
    const deps = {
      ...{ bus, names: subjects(), runtime: { clock: this.clock, random, announce: () => undefined } },
      payloads: new Payloads({} as SessionDeps["bus"]["blobs"]),
      identity: createIdentity(settings, { host: "h", pid: 1 }, random),
    } as unknown as SessionDeps;
    const state = {
      call: async (
        _name: string,
        inputs: unknown[],
        _facts: unknown,
        { signal }: { signal: AbortSignal },
      ) => {
        this.ran.push(inputs);
        return this.code(inputs, signal);
      },
    } as unknown as HostSession;
    const nothing = () => undefined;
    this.calls = new Calls({
      ...{ deps, timing: { ...defaultTiming, ...timing }, slots: new Slots(10), state, definition: model },
      session: { id: "s", type: "model", epoch: 7, attachment: 1 } as SessionView,
      ...{ mayReport: () => this.mayReport, fenced: this.fence.signal },
      ...{ onQuiet: nothing, onBusy: nothing, onRan: nothing, onHung },
      onFenced: () => void this.fenced++,
    });
  }

  lend(of: number, name = "ask", instanceId = "i1"): "taken" | "seen" | "ended" {
    const task = ActivityTask.parse({
      ...{ v: 1, instanceId, execution: 1, of, attempt: 1, name, input: { json: `${instanceId}/${of}` } },
      ...{ scheduledAt: 0, timeouts: {}, reportStart: false },
    });
    return this.calls.lend(task, {
      deliveries: 1,
      settle: (how) => this.settled.push(`${instanceId}/${of} ${how}`),
    });
  }

  /** Runs until the code waits. */
  pass(ms = 20): Promise<void> {
    return this.clock.advance(ms);
  }
}

const forever = (_inputs: unknown[], signal: AbortSignal) =>
  new Promise<Item[]>((_resolve, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
  );

let rig: Rig;
beforeEach(() => {
  rig = new Rig();
});

it("defect 21: after a pause nothing is handed to user code before the fence is asked", async () => {
  rig.mayReport = false;
  expect(rig.lend(1)).toBe("taken");
  await rig.pass();
  expect(rig.ran).toEqual([]);
  expect(rig.fenced).toBe(1);
  rig.calls.end(new SessionLostError("paused"));
  expect(rig.settled).toEqual(["i1/1 back"]);
});

describe("done", () => {
  it("when its report is stored, and not before", async () => {
    let stored = false;
    rig.publish = () => (stored ? { kind: "stored", seq: 1, duplicate: false } : { kind: "unknown" });
    rig.lend(1);
    await rig.pass();
    expect(rig.ran).toEqual([["i1/1"]]);
    expect(rig.settled).toEqual([]);
    stored = true;
    await rig.pass(5000);
    expect(rig.settled).toEqual(["i1/1 done"]);
    expect(rig.reported.every(({ msgId }) => msgId === "act-i1-1-1-1-e7-completed")).toBe(true);
  });

  it("when it failed: the instance decides about the next attempt", async () => {
    rig.code = async () => [{ ok: false, error: { code: "oops", message: "no", retryable: true } }];
    rig.lend(1);
    await rig.pass();
    expect(rig.settled).toEqual(["i1/1 done"]);
    expect(rig.reported).toMatchObject([{ kind: "failed" }]);
  });

  it("for each of a batch of many instances by itself", async () => {
    for (const instanceId of ["a", "b", "c"]) rig.lend(1, "many", instanceId);
    await rig.pass();
    expect(rig.ran).toEqual([["a/1", "b/1", "c/1"]]);
    expect(rig.settled.sort()).toEqual(["a/1 done", "b/1 done", "c/1 done"]);
  });

  it("when nobody waits for it any more, running or not; of that instance alone", async () => {
    rig.code = forever;
    rig.lend(1, "ask", "a");
    rig.lend(1, "ask", "b");
    rig.lend(2, "ask", "a");
    await rig.pass();
    rig.calls.cancel({ instanceId: "a", execution: 1, of: 2 });
    rig.calls.cancel({ instanceId: "a", execution: 1, of: 1 });
    await rig.pass();
    expect(rig.settled).toEqual(["a/2 done", "a/1 done"]);
    expect(rig.reported).toEqual([]);
    expect(rig.ran.at(-1)).toEqual(["b/1"]);
  });
});

describe("given back", () => {
  it("what waits, when the session ends; what runs may finish first", async () => {
    let answer: () => void = () => undefined;
    rig.code = (inputs) =>
      new Promise((resolve) => {
        answer = () => resolve(inputs.map((value) => ({ ok: true, value })));
      });
    for (const of of [1, 2, 3]) rig.lend(of);
    await rig.pass();
    rig.calls.finish();
    expect(rig.settled).toEqual(["i1/2 back", "i1/3 back"]);
    answer();
    await rig.pass();
    expect(rig.settled).toEqual(["i1/2 back", "i1/3 back", "i1/1 done"]);
    expect(rig.lend(4)).toBe("ended");
  });

  it("what runs too, when the session is lost or closed under it", async () => {
    rig.code = forever;
    rig.lend(1);
    rig.lend(2);
    await rig.pass();
    rig.calls.end(new SessionLostError({ sessionId: "s", reason: "expired" }));
    await rig.pass();
    expect(rig.settled).toEqual(["i1/2 back", "i1/1 back"]);
    expect(rig.reported).toEqual([]);
  });

  it("what was finished under a right that is over (S7)", async () => {
    rig.code = async (inputs) => {
      rig.mayReport = false;
      return inputs.map((value) => ({ ok: true, value }));
    };
    rig.lend(1);
    await rig.pass();
    expect(rig.settled).toEqual(["i1/1 back"]);
    expect(rig.reported).toEqual([]);
  });

  it("what could not be told before the right was over", async () => {
    rig.publish = () => ({ kind: "unknown" });
    rig.lend(1);
    await rig.pass();
    rig.fence.abort();
    await rig.pass(10_000);
    expect(rig.settled).toEqual(["i1/1 back"]);
  });
});

it("is told from what was seen before: that is not lent again, nor settled here", async () => {
  expect(rig.lend(1)).toBe("taken");
  expect(rig.lend(1)).toBe("seen");
  expect(rig.lend(1, "ask", "i2")).toBe("taken");
  await rig.pass();
  expect(rig.lend(1)).toBe("seen");
  expect(rig.settled).toEqual(["i1/1 done", "i2/1 done"]);
  expect(rig.ran).toHaveLength(2);
});

it("knows how long the oldest has waited", async () => {
  rig.code = forever;
  rig.lend(1);
  await rig.pass(100);
  expect(rig.calls.longestWaitMs()).toBe(0);
  rig.lend(2);
  await rig.pass(250);
  rig.lend(3);
  expect(rig.calls.longestWaitMs()).toBe(250);
});

describe("a member that is lent (CALL-5)", () => {
  const call = (instanceId: string, of: number) =>
    ActivityTask.parse({
      ...{
        v: 1,
        instanceId,
        execution: 1,
        of,
        attempt: 1,
        name: "ask",
        input: { json: `${instanceId}/${of}` },
      },
      ...{ scheduledAt: 0, timeouts: {}, reportStart: false },
    });

  it("ends what is left of the lending before, then serves the next", async () => {
    const ended: string[] = [];
    rig.code = (inputs, signal) =>
      String(inputs[0]).startsWith("a/")
        ? forever(inputs, signal).finally(() => ended.push(String(inputs[0])))
        : Promise.resolve(inputs.map((value) => ({ ok: true, value })));
    rig.calls.add({ task: call("a", 1), call: true, lending: 1 });
    rig.calls.add({ task: call("a", 2), call: true, lending: 1 });
    await rig.pass();
    expect(rig.calls.add({ task: call("b", 1), call: true, lending: 2 })).toBe(true);
    await rig.pass();
    expect(ended).toEqual(["a/1"]);
    expect(rig.ran).toEqual([["a/1"], ["b/1"]]);
    expect(rig.reported).toMatchObject([{ msgId: "act-b-1-1-1-e7-completed" }]);
  });

  it("drops what comes late of an earlier lending", async () => {
    rig.calls.add({ task: call("b", 1), call: true, lending: 2 });
    expect(rig.calls.add({ task: call("a", 9), call: true, lending: 1 })).toBe(false);
    await rig.pass();
    expect(rig.ran).toEqual([["b/1"]]);
  });

  it("is given up when what was left behind does not stop", async () => {
    rig = new Rig({ closeMs: 20 });
    rig.code = () => new Promise(() => undefined);
    rig.calls.add({ task: call("a", 1), call: true, lending: 1 });
    await rig.pass();
    rig.calls.add({ task: call("b", 1), call: true, lending: 2 });
    await rig.clock.run(rig.hung);
    expect(rig.ran).toEqual([["a/1"]]);
  });
});
