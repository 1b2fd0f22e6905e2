/** The keeper of a schedule, turn by turn, live and replayed before every turn. */
import { expect } from "vitest";
import type { ScheduleCommand, ScheduleSpec } from "../../../schemas/index.ts";
import { scheduleKeeper } from "../../../services/orchestrator/schedules/schedule-keeper.ts";
import { type Bench, scenario } from "../../support/worlds/instance-bench.ts";
import { signal, start, wake } from "../../support/worlds/instance-messages.ts";

const app = { scheduleKeeper };
const options = { instanceId: "schedule-a" };
const begin = (bench: Bench, spec: Partial<ScheduleSpec>) =>
  bench.turn(start("holdfast-schedule", { spec: { orchestration: "report", every: 10_000, ...spec } }));
const say = (bench: Bench, command: ScheduleCommand) => bench.turn(signal("schedule", command));
const tick = (bench: Bench) => {
  bench.now = Math.ceil((bench.now + 10) / 10_000) * 10_000;
  return bench.turn(wake());
};
const started = (bench: Bench) =>
  bench.events.flatMap((event) => (event.kind === "child.scheduled" ? [event.childId] : []));

scenario(
  "a time starts a followed run, whose end lets the next begin",
  app,
  async (bench) => {
    await begin(bench, { input: { n: 1 } });
    expect(bench.last("timer.created").fireAt).toBe(1_010_000);
    const { effects } = await tick(bench);
    expect(effects).toContainEqual({
      kind: "start-child",
      id: expect.any(Number),
      childId: "a-19700101T001650Z",
      name: "report",
      input: { json: { n: 1 } },
      attached: false,
      grants: [],
      follow: "schedule",
    });
    await tick(bench);
    expect(started(bench)).toHaveLength(1);
    await say(bench, { kind: "ended", instanceId: "a-19700101T001650Z", status: "completed" });
    await tick(bench);
    expect(started(bench)).toEqual(["a-19700101T001650Z", "a-19700101T001710Z"]);
    expect(bench.last("status.set").status).toMatchObject({ json: { runs: 2, skipped: 1 } });
  },
  options,
);

scenario(
  "an end that is told twice, late, or of a run nobody knows changes nothing",
  app,
  async (bench) => {
    await begin(bench, {});
    await tick(bench);
    const ended: ScheduleCommand = { kind: "ended", instanceId: "a-19700101T001650Z", status: "failed" };
    await say(bench, ended);
    await say(bench, ended);
    await say(bench, { kind: "ended", instanceId: "somebody", status: "completed" });
    await tick(bench);
    expect(started(bench)).toHaveLength(2);
  },
  options,
);

scenario(
  "what is said that is no command is shown and harms nothing",
  app,
  async (bench) => {
    await begin(bench, {});
    await bench.turn(signal("schedule", { kind: "explode" }));
    expect(bench.last("status.set").status).toMatchObject({
      json: { error: expect.stringContaining("a command that is none") },
    });
    await tick(bench);
    expect(started(bench)).toHaveLength(1);
  },
  options,
);

scenario(
  "other runs are asked to end once, and the next begins when they have",
  app,
  async (bench) => {
    await begin(bench, { overlap: "terminate-other" });
    await tick(bench);
    await tick(bench);
    await tick(bench);
    const asked = bench.effects.filter(({ kind }) => kind === "request-end");
    expect(asked).toMatchObject([{ to: "a-19700101T001650Z", verb: "terminate" }]);
    expect(started(bench)).toHaveLength(1);
    await say(bench, { kind: "ended", instanceId: "a-19700101T001650Z", status: "terminated" });
    expect(started(bench)).toEqual(["a-19700101T001650Z", "a-19700101T001710Z"]);
  },
  options,
);

scenario(
  "its history begins anew again and again, with all that is open",
  app,
  async (bench) => {
    await begin(bench, { overlap: "buffer-all", limit: 60 });
    for (let i = 0; i < 50; i++) await tick(bench);
    expect(bench.state.execution).toBeGreaterThanOrEqual(3);
    for (let i = 0; i < 70; i++) {
      const running = started(bench).at(-1) ?? "";
      await say(bench, { kind: "ended", instanceId: running, status: "completed" });
      await tick(bench);
      if (bench.state.status !== "running") break;
    }
    expect(new Set(started(bench)).size).toBe(60);
    expect(started(bench)).toHaveLength(60);
    expect(bench.output).toMatchObject({ runs: 60 });
  },
  { ...options, unchecked: true },
);

scenario(
  "paused, it has no timer; resumed, it goes on with what comes next",
  app,
  async (bench) => {
    await begin(bench, {});
    await say(bench, { kind: "pause", note: "holidays" });
    expect(bench.state.timers.size).toBe(0);
    bench.advance(100_000);
    await say(bench, { kind: "resume" });
    expect(started(bench)).toEqual([]);
    await tick(bench);
    expect(started(bench)).toHaveLength(1);
  },
  options,
);

scenario(
  "what came due before a change goes by the schedule as it was",
  app,
  async (bench) => {
    await begin(bench, { overlap: "allow" });
    bench.advance(25_000);
    await say(bench, {
      kind: "update",
      spec: { orchestration: "other" as never, every: 5_000, overlap: "allow" },
    });
    await tick(bench);
    expect(
      bench.events.flatMap((event) =>
        event.kind === "child.scheduled" ? [[event.childId, event.name]] : [],
      ),
    ).toEqual([
      ["a-19700101T001650Z", "report"],
      ["a-19700101T001700Z", "report"],
      ["a-19700101T001710Z", "other"],
    ]);
  },
  options,
);
