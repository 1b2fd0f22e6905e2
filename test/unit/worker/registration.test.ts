/** How often a worker writes its entry in the register, and how long the entry may be. */
import { expect, test } from "vitest";
import type { WorkerInfo } from "../../../schemas/index.ts";
import { Registration } from "../../../services/worker/registration.ts";
import { defaultTopology, ensureTopology, parseJson, subjects } from "../../../shared/bus/index.ts";
import { seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

const names = subjects();

/** A worker of which `describe` tells; `onWrite` sees each entry before it is stored. */
async function registrationOf(describe: () => object, everyMs: number, onWrite: (body: Uint8Array) => void) {
  const clock = new SimulatedClock();
  const bus = new MemoryBroker({ clock, seed: 1 }).connect();
  await clock.run(ensureTopology(bus, names, { ...defaultTopology, historyShards: 1 }));
  const publish = bus.publish.bind(bus);
  bus.publish = async (subject, body, options) => {
    if (subject.includes("workers")) onWrite(body);
    return publish(subject, body, options);
  };
  const runtime = { clock, random: seededRandom(1), announce: silent };
  const config = { registration: { everyMs, ttlMs: 3 * everyMs } };
  const deps = { bus, names, runtime, identity: { workerId: "w" }, config, fleetHeaders: {} };
  const registration = new Registration(deps as never, describe as never);
  await clock.run(registration.start());
  return { clock, registration };
}

/** Writes for ten seconds in which the load changes every 10 ms. */
async function writes(sessions: number): Promise<{ count: number; listed: number[] }> {
  const stored: Uint8Array[] = [];
  const session = {
    sessionId: "s".repeat(60),
    type: "held",
    epoch: 1_000_000,
    calls: 1,
    queued: 0,
    running: 0,
  };
  const info = { workerId: "w", sessions: Array(sessions).fill(session) };
  const { clock, registration } = await registrationOf(
    () => info,
    5_000,
    (body) => stored.push(body),
  );
  stored.length = 0;
  for (let passed = 0; passed < 10_000; passed += 10) {
    registration.changed();
    await clock.advance(10);
  }
  await clock.run(registration.stop());
  const listed = stored.flatMap((body) => {
    const entry = parseJson(body);
    return entry.kind === "ok" ? (entry.value as WorkerInfo).sessions.length : [];
  });
  return { count: listed.length, listed };
}

test("an entry that may not have been stored is written again at once, not when the next is due", async () => {
  let away = false;
  let tries = 0;
  const { clock, registration } = await registrationOf(
    () => ({ workerId: "w", sessions: [] }),
    60_000,
    () => {
      tries++;
      if (away) throw new Error("no answer");
    },
  );
  away = true;
  registration.changed();
  await clock.advance(5_000);
  expect(tries, "the first entry, and one a second since").toBeGreaterThan(3);
  away = false;
  await clock.advance(2_000);
  const stored = tries;
  await clock.advance(10_000);
  expect(tries, "nothing has changed").toBe(stored);
  await clock.run(registration.stop());
});

test("a short entry is written at most every 200 ms", async () => {
  const { count } = await writes(3);
  expect(count).toBeGreaterThan(40);
  expect(count).toBeLessThanOrEqual(50);
});

test("a long one less often, and with the first thousand of many sessions", async () => {
  const { count, listed } = await writes(20_000);
  expect(new Set(listed)).toEqual(new Set([1_000]));
  expect(count).toBeGreaterThan(5);
  expect(count).toBeLessThan(25);
});
