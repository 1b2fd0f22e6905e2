import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { poolMetadataKey, SessionClaim, WorkerInfo } from "../../schemas/index.ts";
import { OfferedClaims } from "../../shared/sessions/index.ts";
import { hasRoom, nearEnough, type PlacementClaim, place } from "../../shared/sessions/placement.ts";

const type = "model" as never;

function worker(workerId: string, over: Partial<WorkerInfo> = {}): WorkerInfo {
  return WorkerInfo.parse({
    v: 1,
    workerId,
    nodeId: workerId,
    host: "h",
    pid: 1,
    resourceId: `r-${workerId}`,
    buildId: "b1",
    startedAt: 0,
    seenAt: 0,
    draining: false,
    tags: [],
    resources: { total: {}, used: {} },
    activities: [],
    sessionTypes: [type],
    slots: {
      activities: { used: 0, max: 8 },
      calls: { used: 0, max: 64 },
      sessions: { used: 0, max: 4 },
    },
    perType: {},
    warm: [],
    models: [],
    rssBytes: 0,
    eventLoopDelayMs: 0,
    sessions: [],
    ...over,
  });
}

const holding = (used: number, max = 4) => ({
  slots: {
    activities: { used: 0, max: 8 },
    calls: { used: 0, max: 64 },
    sessions: { used, max },
  },
});

const claim = (over: Partial<PlacementClaim> = {}): PlacementClaim => ({
  sessionId: "s1" as never,
  type,
  requires: { tags: [], resources: {} },
  affinityKey: "k",
  affinity: "chosen",
  ...over,
});

describe("claims offered and not answered yet", () => {
  it("count as members of their pool: two that one turn opens go to different workers", () => {
    const view = new OfferedClaims(() => [worker("w1"), worker("w2", holding(3))]);
    const member = (sessionId: string) =>
      SessionClaim.parse({
        ...claim(),
        ...{ v: 1, instanceId: "i", sessionId, attachment: 1, openedAt: 0, deadlineAt: 1 },
        metadata: { [poolMetadataKey]: "p" },
      });
    const [first, second] = [member("m1"), member("m2")];
    expect(place(view.workers(), first)).toMatchObject({ workerId: "w1" });
    view.offering("w1", first);
    expect(place(view.workers(), second)).toMatchObject({ workerId: "w2" });
    view.answered("w1", first, { used: 0, isTaken: false });
    expect(place(view.workers(), second), "refused: nothing of the pool is there").toMatchObject({
      workerId: "w1",
    });
  });
});

describe("placement says who, or why nobody", () => {
  it("names what is missing", () => {
    expect(place([], claim())).toMatchObject({ why: "no_type", message: "no worker is running" });
    expect(place([worker("w1", { sessionTypes: [] })], claim())).toMatchObject({
      why: "no_type",
      message: "no worker serves session type model",
    });
    expect(place([worker("w1")], claim({ buildId: "b2" }))).toMatchObject({
      why: "no_build",
      message: "no worker for type model runs build b2",
    });
    const gpu = claim({ requires: { tags: ["gpu"], resources: {} } });
    expect(place([worker("w1")], gpu)).toMatchObject({
      why: "no_tags",
      message: expect.stringContaining("no worker with tag gpu"),
    });
    const vram = claim({ requires: { tags: [], resources: { vram: 2 } } });
    expect(place([worker("w1")], vram)).toMatchObject({
      why: "no_resources",
      message: "no worker has 2 vram (0 at most)",
    });
    const busy = worker("w1", { resources: { total: { vram: 4 }, used: { vram: 3 } } });
    expect(place([busy], vram)).toMatchObject({
      why: "no_resources",
      message: "no worker has 2 vram free (1 of 4 at most)",
    });
    expect(place([worker("w1", holding(2, 2)), worker("w2", holding(2, 2))], claim())).toMatchObject({
      why: "at_capacity",
      message: "all 2 workers for type model at capacity (4 of 4)",
    });
    expect(place([worker("w3", holding(4))], claim())).toMatchObject({
      message: "worker w3 for type model at capacity (4 of 4)",
    });
    expect(place([worker("w1", { perType: { model: { used: 1, max: 1 } } })], claim())).toMatchObject({
      why: "at_capacity",
      message: expect.stringContaining("(1 of 1)"),
    });
    expect(place([worker("w1", { draining: true })], claim())).toMatchObject({
      why: "at_capacity",
      message: expect.stringContaining("1 draining"),
    });
  });

  it("tells tags that nobody has from tags nobody has together", () => {
    const both = claim({ requires: { tags: ["gpu", "eu"], resources: {} } });
    const message = "no worker has all the tags gpu, eu together";
    expect(place([worker("w1", { tags: ["gpu"] }), worker("w2", { tags: ["eu"] })], both)).toMatchObject({
      message,
    });
  });

  it("tells a resource that left from one that is full", () => {
    const pinned = claim({ resourceId: "r-w1" });
    expect(place([worker("w2")], pinned)).toMatchObject({ why: "resource_gone" });
    expect(place([worker("w1", holding(4)), worker("w2")], pinned)).toMatchObject({ why: "at_capacity" });
    expect(place([worker("w1"), worker("w2")], pinned)).toMatchObject({ workerId: "w1" });
  });

  it("comes back to the machine with a token of 0.1.0, which names it", () => {
    const pinned = claim({ resourceId: "gpu-2-example-org" });
    const workers = [worker("w1"), worker("w2", { host: "gpu-2.example.org" })];
    expect(place(workers, pinned)).toMatchObject({ workerId: "w2" });
    expect(place([worker("w1")], pinned)).toMatchObject({ why: "resource_gone" });
  });

  it("defect 35: prefers the worker that parked the session, if it can take it again", () => {
    const workers = [worker("w1", holding(3)), worker("w2", { warm: ["k"] }), worker("w3")];
    expect(place(workers, claim({ parkedBy: "w1" as never }))).toMatchObject({ workerId: "w1", why: "warm" });
    const [first, , third] = workers;
    if (!first || !third) throw new Error("unreachable");
    expect(nearEnough(third, first, claim({ parkedBy: "w1" as never }))).toBe(false);
    const full = [worker("w1", holding(4)), worker("w3")];
    expect(place(full, claim({ parkedBy: "w1" as never }))).toMatchObject({ workerId: "w3" });
  });

  it("defect 37: same type and config goes to the warm worker, unless it is overloaded", () => {
    const made = claim({ affinity: undefined, affinityKey: "model-1a2b3c" });
    const warm = (held: number, more: Partial<WorkerInfo> = {}) =>
      worker("w1", { ...holding(held, 8), warm: ["model-1a2b3c"], ...more });
    const idle = worker("w2", holding(0, 8));
    expect(place([warm(0), idle], made)).toMatchObject({ workerId: "w1", why: "warm" });
    expect(place([warm(2), idle], made)).toMatchObject({ workerId: "w1", why: "warm" });
    expect(nearEnough(idle, warm(1), made), "passed on to the warm one").toBe(false);
    expect(place([warm(3), idle], made)).toMatchObject({ workerId: "w2" });
    expect(place([warm(0, { eventLoopDelayMs: 500 }), idle], made)).toMatchObject({ workerId: "w2" });
    // A key of the same shape that the caller chose attracts as long as there is room.
    const chosen = claim({ affinityKey: "model-1a2b3c" });
    expect(place([warm(7), idle], chosen)).toMatchObject({ workerId: "w1", why: "warm" });
  });

  it("prefers warm over idle, and idle over busy", () => {
    const warm = worker("w1", { ...holding(3), warm: ["k"] });
    expect(place([warm, worker("w2")], claim())).toMatchObject({ workerId: "w1", why: "warm" });
    expect(place([worker("w1", holding(3)), worker("w2")], claim())).toMatchObject({ workerId: "w2" });
    const slow = worker("w1", { eventLoopDelayMs: 80 });
    expect(place([slow, worker("w2")], claim())).toMatchObject({ workerId: "w2" });
  });

  it("leaves out whom it is told to", () => {
    const options = { except: new Set(["w1"]) };
    expect(place([worker("w1"), worker("w2", holding(3))], claim(), options)).toMatchObject({
      workerId: "w2",
    });
  });

  it("lets the puller keep a claim when passing it on gains little", () => {
    expect(nearEnough(worker("w1", holding(1)), worker("w2"), claim())).toBe(true);
    expect(nearEnough(worker("w1", holding(2)), worker("w2"), claim())).toBe(false);
    expect(nearEnough(worker("w1"), worker("w2", { ...holding(2), warm: ["k"] }), claim())).toBe(false);
    expect(nearEnough(worker("w1", { sessionTypes: [] }), worker("w2"), claim())).toBe(false);
    expect(nearEnough(worker("w1", holding(4)), worker("w2", holding(4)), claim())).toBe(false);
  });
});

describe("placement laws", () => {
  const tag = fc.constantFrom("gpu", "eu", "big");
  const workers = fc
    .array(
      fc.record({
        tags: fc.uniqueArray(tag),
        total: fc.nat(4),
        used: fc.nat(4),
        held: fc.nat(4),
        max: fc.nat(4),
        warm: fc.boolean(),
        draining: fc.boolean(),
        serves: fc.boolean(),
        build: fc.constantFrom("b1", "b2"),
        delay: fc.nat(200),
      }),
      { maxLength: 6 },
    )
    .map((all) =>
      all.map((one, i) =>
        worker(`w${i}`, {
          ...holding(one.held, one.max),
          tags: one.tags,
          resources: { total: { vram: one.total }, used: { vram: one.used } },
          warm: one.warm ? ["k"] : [],
          draining: one.draining,
          sessionTypes: one.serves ? [type] : [],
          buildId: one.build,
          eventLoopDelayMs: one.delay,
        }),
      ),
    );
  const claims = fc
    .record({
      tags: fc.uniqueArray(tag),
      vram: fc.nat(3),
      build: fc.option(fc.constant("b1")),
      id: fc.nat(99),
    })
    .map(({ tags, vram, build, id }) =>
      claim({
        sessionId: `s${id}` as never,
        requires: { tags, resources: { vram } },
        ...(build === null ? {} : { buildId: build }),
      }),
    );
  const eligible = (one: WorkerInfo, wanted: PlacementClaim) =>
    one.sessionTypes.includes(type) &&
    (wanted.buildId === undefined || wanted.buildId === one.buildId) &&
    wanted.requires.tags.every((need) => one.tags.includes(need)) &&
    (one.resources.total.vram ?? 0) - (one.resources.used.vram ?? 0) >=
      (wanted.requires.resources.vram ?? 0) &&
    hasRoom(one, type);

  it("chooses only who meets every requirement, and chooses whenever somebody does", () => {
    fc.assert(
      fc.property(workers, claims, (all, wanted) => {
        const fit = all.filter((one) => eligible(one, wanted));
        const outcome = place(all, wanted);
        if (outcome.kind === "none") {
          expect(fit).toHaveLength(0);
          return;
        }
        const chosen = fit.find((one) => one.workerId === outcome.workerId);
        expect(chosen).toBeDefined();
        if (fit.some((one) => one.warm.includes("k"))) expect(chosen?.warm).toContain("k");
      }),
      { numRuns: 500 },
    );
  });

  it("does not depend on the order of the view, and never changes it", () => {
    fc.assert(
      fc.property(workers, claims, (all, wanted) => {
        const before = all.map((one) => one.workerId);
        expect(place([...all].reverse(), wanted)).toEqual(place(all, wanted));
        expect(all.map((one) => one.workerId)).toEqual(before);
      }),
    );
  });

  it("among equals no busier one is taken, and the puller keeps only what it may", () => {
    fc.assert(
      fc.property(workers, claims, (all, wanted) => {
        const outcome = place(all, wanted);
        if (outcome.kind === "none") return;
        const best = all.find((one) => one.workerId === outcome.workerId);
        if (!best) throw new Error("chosen from outside the view");
        const load = ({ slots: { sessions } }: WorkerInfo) => sessions.used / sessions.max;
        for (const one of all.filter((other) => eligible(other, wanted))) {
          if (one.warm.length === best.warm.length) expect(load(one)).toBeGreaterThanOrEqual(load(best));
        }
        for (const one of all) {
          if (!nearEnough(one, best, wanted)) continue;
          expect(eligible(one, wanted)).toBe(true);
          expect(one.warm.length).toBeGreaterThanOrEqual(best.warm.length);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("spreads ties over the workers", () => {
    const all = Array.from({ length: 4 }, (_, i) => worker(`w${i}`));
    const hits = new Map<string, number>();
    for (let i = 0; i < 400; i++) {
      const outcome = place(all, claim({ sessionId: `s${i}` as never }));
      if (outcome.kind === "chosen") hits.set(outcome.workerId, (hits.get(outcome.workerId) ?? 0) + 1);
    }
    for (const one of all) expect(hits.get(one.workerId) ?? 0).toBeGreaterThan(40);
  });
});
