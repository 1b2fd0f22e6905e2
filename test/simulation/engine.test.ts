/**
 * The whole engine on bad days: messages lost, doubled, late and unanswered; orchestrators dying at every point of a
 * turn; workers dying with sessions in their hands; the server restarting. Everything started must finish with the
 * right result, and every history must obey the laws. Failures print the seed.
 */
import { expect, test } from "vitest";
import {
  Borrower,
  type Commit,
  type HistoryEvent,
  type PoolSignal,
  poolInstance,
  poolSignal,
  useOf,
} from "../../schemas/index.ts";
import type { FaultPoint } from "../../services/orchestrator/fault-points.ts";
import { encode } from "../../shared/bus/index.ts";
import { collectApp } from "../../shared/definitions/index.ts";
import type { InstanceHandle } from "../../shared/sdk/index.ts";
import { checkHistory } from "../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../shared/testing/memory/index.ts";
import { type Member, World } from "../../shared/testing/world/world.ts";
import { violationLines } from "../../shared/verify/index.ts";
import { expected, simulatedApp } from "../apps/simulated.ts";

const size = 4;

interface Day {
  seed: number;
  faulty: boolean;
  alwaysReplay: boolean;
  layout?: "per-instance" | "shared";
  dieAt?: { point: FaultPoint; count: number };
  nemesis?: boolean;
  replicas?: number;
  programs?: string[];
}

async function live(day: Day): Promise<World> {
  let world: World;
  const app = collectApp(simulatedApp(() => world));
  // Late as they really are: a schedule that fires with the local timer would repair what the next one has to.
  const calm = day.dieAt ? { ...noFaults, scheduleDelayMs: [0, 250] as const } : noFaults;
  world = new World({ ...day, app, faults: day.faulty ? someFaults : calm });
  await world.prepare();
  const orchestrators: Member[] = [await world.orchestrator(day.dieAt), await world.orchestrator()];
  const workers: Member[] = [await world.worker(), await world.worker()];
  await world.watcher();
  const programs = day.programs ?? Object.keys(expected);
  const handles = new Map<string, InstanceHandle>();
  for (const name of programs) {
    handles.set(name, await world.start(name, size, `${name}-x`));
    if (name !== "signals") continue;
    for (let i = 0; i < size; i++) await world.signal(`${name}-x`, "tick", i);
  }
  if (day.nemesis) {
    const strike = async (victims: Member[], replace: () => Promise<Member>) => {
      await world.clock.advance(world.random.next() * 2000);
      victims.shift()?.kill();
      await world.clock.advance(world.random.next() * 4000);
      victims.push(await replace());
    };
    await strike(workers, () => world.worker());
    await strike(orchestrators, () => world.orchestrator());
    world.broker.stop();
    await world.clock.advance(1500);
    world.broker.start();
    await strike(workers, () => world.worker());
  }
  for (const name of programs) {
    const id = `${name}-x`;
    const context = `seed ${day.seed}, ${name}`;
    try {
      const result = await world.run(
        handles.get(name)?.result() ?? Promise.reject(new Error("not started")),
        3_600_000,
      );
      expect(result, context).toEqual(expected[name]?.(size));
    } catch (error) {
      const status = await world.run(world.client.status(id)).catch(String);
      throw new Error(`${context}: ${JSON.stringify(day)} ${JSON.stringify(status)}`, { cause: error });
    }
    const commits = await world.history(id);
    expect(commits?.length, context).toBeGreaterThan(0);
    checkHistory(commits ?? []);
    if (name === "pooled" || name === "borrowed") await checkKeeper(world, commits ?? [], context);
  }
  // Whole again: all that is left must be in order, and nothing may be left to do.
  world.broker.fate.faults = noFaults;
  await world.clock.advance(120_000);
  const report = await world.verify({ quiet: true });
  expect(violationLines(report), `seed ${day.seed}: ${JSON.stringify(day)}`).toEqual([]);
  expect(report.read.instances, "instances the checker read").toBeGreaterThanOrEqual(programs.length);
  return world;
}

/** When its users are gone, a pool's members go: every one that was opened is closed, whatever it went through. */
async function checkKeeper(world: World, user: readonly Commit[], context: string): Promise<void> {
  const joined = user.flatMap(({ events }) => events).find((event) => event.kind === "pool.joined");
  const keeper = poolInstance(joined?.poolId ?? "");
  for (let waitedMs = 0; ; waitedMs += 10_000) {
    const commits = (await world.history(keeper)) ?? [];
    checkHistory(commits);
    const members = new Map<string, string>();
    for (const event of commits.flatMap(({ events }) => events)) {
      if ("sessionId" in event) members.set(event.sessionId, event.kind);
    }
    const open = [...members].filter(([, last]) => last !== "session.closed" && last !== "session.failed");
    if (members.size > 0 && open.length === 0) return;
    expect(waitedMs, `${context}: open members ${open.join(" ")}`).toBeLessThan(600_000);
    await world.clock.advance(10_000);
  }
}

test.each([
  ["per-instance", false],
  ["per-instance", true],
  ["shared", false],
  ["shared", true],
] as const)("a good day, layout %s, always replaying %s", async (layout, alwaysReplay) => {
  const world = await live({ seed: 1, faulty: false, alwaysReplay, layout });
  expect(world.count("instance.closed")).toBeGreaterThanOrEqual(Object.keys(expected).length);
  expect(world.happenings.filter((happening) => happening.kind === "fault")).toEqual([]);
});

const lentTo = (event: HistoryEvent): string[] =>
  event.kind === "session.lent" ? [event.lending.to.instanceId] : [];

test("a member that is lent to nobody comes back", async () => {
  let world: World;
  const app = collectApp(simulatedApp(() => world));
  world = new World({ seed: 7, alwaysReplay: false, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  await world.worker();
  const first = await world.start("writer", null, "first");
  expect(await world.run(first.result())).toBe(3);
  const joined = (await world.history("first"))
    ?.flatMap(({ events }) => events)
    .find((event) => event.kind === "pool.joined");
  const lender = poolInstance(joined?.poolId ?? "");
  const say = (signal: PoolSignal) =>
    world.run(world.outside.publish(world.names.signal(lender, poolSignal), encode(signal)));
  // Joins of a use that is over and of an instance that never was, as if doubled and delayed beyond all memory.
  for (let n = 0; n < 200; n++) await say({ kind: "leave", user: `other-${n}` });
  for (const instanceId of ["first", "nobody"]) {
    const borrower = Borrower.parse({ instanceId, execution: 1, of: joined?.id });
    await say({ kind: "join", user: useOf(borrower), min: 1, max: 2, borrower });
  }
  const second = await world.start("writer", null, "second");
  expect(await world.run(second.result(), 600_000)).toBe(3);
  const lent = (await world.history(lender))?.flatMap(({ events }) => events).flatMap(lentTo);
  expect(lent, "the ghosts had their turn").toEqual(["first", "first", "nobody", "second"]);
});

const points: FaultPoint[] = [
  "turn.before_append",
  "turn.after_append",
  "turn.after_effects",
  "effects.half_published",
  "continue.between_executions",
];

test.each(points)("an orchestrator dies at %s", async (point) => {
  for (const [index, count] of [1, 2, 5, 9].entries()) {
    await live({ seed: 100 + index, faulty: false, alwaysReplay: index % 2 === 1, dieAt: { point, count } });
  }
});

test("bad days", async () => {
  const seeds = Number(process.env.SIMULATION_SEEDS ?? 12);
  const first = Number(process.env.SIMULATION_FIRST ?? 1000);
  const seen = new Map<string, number>();
  for (let seed = first; seed < first + seeds; seed++) {
    const replicas = seed % 2 === 0 ? 3 : 1;
    const world = await live({ seed, faulty: true, alwaysReplay: seed % 3 === 0, nemesis: true, replicas });
    for (const { kind } of world.happenings) seen.set(kind, (seen.get(kind) ?? 0) + 1);
  }
  // I18: a run that never met the rare branches proved nothing.
  for (const rare of [
    "message.duplicate",
    "turn.fenced",
    "append.ambiguous",
    "completion.late",
    "session.lost",
    "instance.loaded",
  ]) {
    expect(seen.get(rare) ?? 0, `${rare} in seeds from ${first}`).toBeGreaterThan(0);
  }
}, 300_000);
