/** What strangers, or mistakes, leave where no consumer reads: it is buried, and what waits rightly stays. */
import { expect, test } from "vitest";
import { DeadLetter, InstanceId, type InstanceSummary } from "../../../schemas/index.ts";
import { defaultWatcherConfig } from "../../../services/watcher/config.ts";
import { newCounters } from "../../../services/watcher/counters.ts";
import { openRegisters, type WatcherDeps } from "../../../services/watcher/deps.ts";
import { Grace } from "../../../services/watcher/grace.ts";
import { BuryJunk } from "../../../services/watcher/retention/bury-junk.ts";
import { Sweep } from "../../../services/watcher/retention/sweep.ts";
import {
  Bucket,
  decode,
  defaultTopology,
  encode,
  ensureTopology,
  subjects,
} from "../../../shared/bus/index.ts";
import { type Runtime, seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";
import { historiesAt } from "../../../shared/testing/world/members.ts";

const names = subjects();
const bytes = (text: string) => new TextEncoder().encode(text);

async function watched() {
  const clock = new SimulatedClock();
  const bus = new MemoryBroker({ clock }).connect();
  const run = <T>(work: Promise<T>): Promise<T> => clock.run(work);
  const runtime: Runtime = { clock, random: seededRandom(1), announce: silent };
  await run(ensureTopology(bus, names, defaultTopology));
  const deps: WatcherDeps = {
    ...{ bus, names, runtime, config: defaultWatcherConfig, counters: newCounters() },
    registers: openRegisters(bus, names, runtime),
    ...{ grace: new Grace(runtime, 1_000), generation: { allows: () => true }, acting: () => true },
  };
  return { clock, run, bus, deps };
}

test("defect 22: junk among schedules and on unknown queues is buried, work of instances that live stays", async () => {
  const { clock, run, bus, deps } = await watched();
  const step = new BuryJunk(deps, { exists: async (instanceId) => instanceId === "unlisted" });
  const task = (instanceId: string) =>
    encode({
      ...{ v: 1, instanceId, execution: 1, of: 2, attempt: 1, name: "nobody", input: { json: 1 } },
      ...{ scheduledAt: 0, timeouts: {}, reportStart: false },
    });
  const summarise = (id: string, status: "running" | "completed") => {
    const now = clock.now();
    const summary: InstanceSummary = {
      ...{ v: 1, instanceId: InstanceId.parse(id), status, execution: 1, events: 2, updatedAt: now },
      ...(status === "completed" ? { endedAt: now } : {}),
    };
    return new Bucket(bus, names.bucket("instances")).put(id, encode(summary));
  };
  await run(summarise("live", "running"));
  await run(summarise("over", "completed"));
  const at = clock.now() + 3_600_000;
  const junk = ["alarms.a.1.b", "alarms.x.1.2", "retries.zzz", "delayed.q.1.2.3"];
  for (const subject of junk) await run(bus.publish(subject, bytes("junk")));
  await run(bus.publish(names.activity("unknown", "nobody"), bytes("not JSON")));
  await run(bus.publish(names.claim("unknown", "s1"), bytes("[]")));
  const stays = [
    [
      names.timer("live", 1, 2),
      encode({}),
      { schedule: { at, target: names.fired(names.verb("live", "wake")) } },
    ],
    [names.activity("unknown", "nobody"), task("live"), {}],
    [names.activity("unknown", "nobody"), task("unlisted"), {}],
    [names.activity("unknown", "nobody"), encode({ v: 2, unheard: "of" }), {}],
  ] as const;
  for (const [subject, body, options] of stays) await run(bus.publish(subject, body, options));
  // No client waits for these and no consumer takes them: they are removed.
  for (const id of ["over", "removed"]) await run(bus.publish(names.activity("unknown", "nobody"), task(id)));
  expect(await run(step.run(100)), "work may be on its way to a worker").toBe(junk.length);
  await clock.advance(120_000);
  expect(await run(step.run(100))).toBe(4);
  const left = async (stream: string) => (await run(bus.streamInfo(stream)))?.messages;
  expect(await left(names.timersStream)).toBe(1);
  expect(await left(names.activitiesStream)).toBe(3);
  expect([await left(names.sessionsStream), await left(names.claimsStream)]).toEqual([0, 0]);
  const letters = (await run(bus.read(names.deadStream, "dead.>"))) ?? [];
  const reasons = letters.map(({ body }) => {
    const letter = decode(DeadLetter, body);
    return letter.kind === "ok" ? `${letter.value.subject} ${letter.value.reason.code}` : letter.message;
  });
  expect(reasons.sort()).toEqual(
    [...junk, "activities.unknown.nobody", "claims.unknown.s1"].map((subject) => `${subject} junk`).sort(),
  );
});

test("defect 22: junk goes with a round of the watcher's sweep", async () => {
  const { clock, run, bus, deps } = await watched();
  await run(bus.publish("retries.zzz", bytes("junk")));
  await clock.advance(60_000);
  await run(new Sweep(deps, historiesAt(deps, 1)).round());
  expect((await run(bus.streamInfo(names.activitiesStream)))?.messages).toBe(0);
  expect((await run(bus.streamInfo(names.deadStream)))?.messages).toBe(1);
});
