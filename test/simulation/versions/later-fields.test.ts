/**
 * E1: every message and every entry of a register carries fields that only a later version knows, at every depth, as
 * while a newer version runs beside this one. Instances with sessions, children, pools and timers must come to the same
 * ends: nothing is dead-lettered, nothing hangs, nothing is lost. Failures print the seed.
 */
import { expect, test } from "vitest";
import { collectApp } from "../../../shared/definitions/index.ts";
import type { InstanceHandle } from "../../../shared/sdk/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { expected, simulatedApp } from "../../apps/simulated.ts";
import { asLater, strangeFields } from "../../support/documents/later-version.ts";
import { answeredAs, wiredAs } from "../../support/documents/wire-schemas.ts";
import { type Tap, tapWorld } from "../../support/nats/tapped-bus.ts";

const size = 3;
const text = new TextDecoder();

interface Day {
  seed: number;
  tap: Tap;
  faulty?: boolean;
  nemesis?: boolean;
  alwaysReplay?: boolean;
}

async function live({ seed, tap, faulty, nemesis, alwaysReplay = false }: Day): Promise<World> {
  let world: World;
  const app = collectApp(simulatedApp(() => world));
  world = new World({ seed, alwaysReplay, app, faults: faulty ? someFaults : noFaults });
  tapWorld(world, tap);
  await world.prepare();
  const orchestrator = await world.orchestrator();
  await world.orchestrator();
  const worker = await world.worker();
  await world.worker();
  await world.watcher();
  const handles = new Map<string, InstanceHandle>();
  for (const name of Object.keys(expected)) {
    handles.set(name, await world.start(name, size, `${name}-x`));
    if (name !== "signals") continue;
    for (let i = 0; i < size; i++) await world.signal(`${name}-x`, "tick", i);
  }
  if (nemesis) {
    await world.clock.advance(world.random.next() * 1500);
    worker.kill();
    await world.worker();
    await world.clock.advance(world.random.next() * 3000);
    orchestrator.kill();
    await world.orchestrator();
  }
  for (const [name, handle] of handles) {
    const context = `seed ${seed}, ${name}`;
    const result = await world.run(handle.result(), 3_600_000).catch((error: unknown) => {
      throw new Error(context, { cause: error });
    });
    expect(result, context).toEqual(expected[name]?.(size));
    checkHistory((await world.history(`${name}-x`)) ?? []);
  }
  expect(world.count("dead.lettered"), `seed ${seed}`).toBe(0);
  expect(world.count("instance.parked"), `seed ${seed}`).toBe(0);
  return world;
}

test("what is stored keeps the fields of a later version, and nobody complains", async () => {
  const seed = 1;
  const world = await live({ seed, tap: asLater });
  const faults = world.happenings.filter((happening) => happening.kind === "fault");
  expect(faults).toEqual([]);
  const commits = (await world.history("counted-x")) ?? [];
  expect(commits.length).toBeGreaterThan(3);
  expect(commits.every((commit) => "laterVersion" in commit)).toBe(true);
  expect(commits.flatMap(({ events }) => events).every((event) => "laterVersion" in event)).toBe(true);
});

test.each(Array.from({ length: 6 }, (_, n) => 100 + n))(
  "a bad day with later fields, seed %i",
  async (seed) => {
    await live({ seed, tap: asLater, faulty: true, nemesis: seed % 2 === 0, alwaysReplay: seed % 3 === 0 });
  },
);

test("what we write ourselves has no field that its schema does not name", async () => {
  const strange = new Map<string, string[]>();
  const seen = new Set<string>();
  const look: Tap = ({ subject, body, headers, answer }) => {
    const wired = answer ? answeredAs(subject) : wiredAs(subject);
    if (wired) {
      const value: unknown = JSON.parse(text.decode(body));
      seen.add(wired.name);
      expect(wired.schema.safeParse(value).error, `${subject} ${text.decode(body)}`).toBeUndefined();
      const found = strangeFields(wired.schema, value);
      if (found.length > 0) strange.set(wired.name, found);
    }
    return { body, headers };
  };
  await live({ seed: 7, tap: look, nemesis: true });
  expect(Object.fromEntries(strange)).toEqual({});
  expect([...seen].sort()).toMatchInlineSnapshot(`
    [
      "activity-report",
      "activity-task",
      "cancel-notice",
      "child-report",
      "commit",
      "instance-summary",
      "lane-answer",
      "lane-calls",
      "lane-holdings",
      "lane-question",
      "lane-recordings",
      "lane-task",
      "lease-value",
      "pool-signal",
      "session-claim",
      "session-record",
      "session-report",
      "session-work",
      "wake",
      "worker-info",
    ]
  `);
});
