import { describe, expect, it } from "vitest";
import { lifeOf } from "../../../services/gateway/dashboard/src/history/session-life.ts";
import { density } from "../../../services/gateway/dashboard/src/timeline/density.ts";
import { withInside } from "../../../services/gateway/dashboard/src/timeline/inside-rows.ts";
import { layout } from "../../../services/gateway/dashboard/src/timeline/layout.ts";
import { idleScale, trueScale } from "../../../services/gateway/dashboard/src/timeline/time-scale.ts";
import { foldTimeline, type InstanceTimeline, type Work } from "../../../shared/timeline/index.ts";

const work = (id: number, from: number, to: number | undefined, more: Partial<Work> = {}): Work => ({
  ...{ kind: "activity", id, name: "step", from, to, state: to === undefined ? "open" : "completed" },
  ...{ attempts: [], ...more },
});
const model = (pieces: Work[], more: Partial<InstanceTimeline> = {}): InstanceTimeline => ({
  ...foldTimeline([]),
  from: 0,
  last: Math.max(...pieces.map(({ to, from }) => to ?? from)),
  work: pieces,
  ...more,
});

const hour = 3_600_000;

describe("idle time", () => {
  const waited = model([work(1, 0, 10_000), work(2, hour, hour + 10_000)]);

  it("is drawn short, and every time has its place and back", () => {
    const scale = idleScale(waited, hour + 10_000);
    expect(scale.gaps).toMatchObject([{ from: 10_000, to: hour }]);
    expect(scale.place(10_000)).toBe(10_000);
    expect(scale.place(hour) - 10_000).toBeCloseTo(scale.gaps[0]?.shown ?? 0);
    expect(scale.place(hour + 10_000) - scale.place(hour)).toBeCloseTo(10_000);
    let before = -1;
    for (const at of [0, 5_000, 10_000, 20_000, hour / 2, hour, hour + 1, hour + 10_000]) {
      expect(scale.time(scale.place(at))).toBeCloseTo(at, 3);
      expect(scale.place(at)).toBeGreaterThan(before);
      before = scale.place(at);
    }
  });

  it("is not where something runs, however long", () => {
    expect(idleScale(model([work(1, 0, hour), work(2, hour, hour + 5)]), hour + 5)).toBe(trueScale);
    expect(idleScale(model([work(1, 0, 10), work(2, 20, undefined)]), hour)).toBe(trueScale);
  });

  it("is where only a timer or a held session waits", () => {
    const timer = work(2, 1_000, hour, { kind: "timer" });
    expect(
      idleScale(model([work(1, 0, 1_000), timer, work(3, hour, hour + 500)]), hour + 500).gaps,
    ).toHaveLength(1);
    const held = {
      ...{
        id: 1,
        sessionId: "s",
        type: "t",
        from: 0,
        to: undefined,
        marks: [],
        standing: "open" as const,
        note: "",
      },
      segments: [{ phase: "held" as const, from: 0, to: undefined }],
    };
    expect(idleScale({ ...waited, sessions: [held] }, hour + 10_000).gaps).toHaveLength(1);
  });
});

describe("a child shown inside", () => {
  it("stands below the row of its bar, marked with whose it is", () => {
    const parent = layout(model([work(1, 0, 10), work(2, 0, 10, { kind: "child", childId: "c" })])).rows;
    const inner = model([work(2, 1, 2), work(3, 3, 4, { kind: "timer" })]);
    expect(withInside(parent, new Map()).map(({ of }) => of)).toEqual([undefined, undefined]);
    expect(withInside(parent, new Map([["c", undefined]])).map(({ of }) => of)).toEqual([
      undefined,
      undefined,
    ]);
    expect(withInside(parent, new Map([["c", inner]])).map(({ of }) => of)).toEqual([
      undefined,
      undefined,
      "c",
      "c",
    ]);
  });
});

describe("the strip", () => {
  it("counts what runs in each column and marks where something failed", () => {
    const pieces = [work(1, 0, 49), work(2, 0, 99, { state: "failed" }), work(3, 80, 99, { kind: "timer" })];
    const columns = density(model(pieces), trueScale, { from: 0, to: 100 }, 4);
    expect(columns.map(({ running }) => running)).toEqual([2, 2, 1, 1]);
    expect(columns.map(({ failed }) => failed)).toEqual([false, false, false, true]);
  });
});

describe("the life of one session", () => {
  it("has its own calls and marks, and nobody else's", () => {
    const life = (sessionId: string, from: number, to: number) => ({
      ...{
        id: 1,
        sessionId,
        type: "t",
        from,
        to,
        segments: [],
        marks: [],
        standing: "done" as const,
        note: "",
      },
    });
    const whole = model(
      [
        work(1, 0, 900),
        work(2, 100, 200, { kind: "call", sessionId: "a" }),
        work(3, 100, 300, { kind: "call", sessionId: "b" }),
      ],
      {
        sessions: [life("a", 50, 400), life("b", 60, 500)],
        received: [{ kind: "signal", id: 9, at: 1, name: "x" }],
      },
    );
    const own = lifeOf(whole, "a");
    expect(own).toMatchObject({ from: 50, last: 400, received: [] });
    expect(own.work.map(({ id }) => id)).toEqual([2]);
    expect(own.sessions.map(({ sessionId }) => sessionId)).toEqual(["a"]);
  });
});
