import { expect, it } from "vitest";
import { ActivityTask } from "../../../schemas/index.ts";
import {
  type Arrival,
  expiryOf,
  looksExpired,
} from "../../../services/worker/activities/refusing/expired.ts";
import type { TaskDeps } from "../../../services/worker/activities/running/run-task.ts";
import { type Delivery, subjects } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { type Happening, seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

const storedAt = 1_000_000;

/** The server has this time, and this worker's clock is so far ahead of it. */
function setUp(serverNow: number | Fault, aheadMs = 0) {
  const clock = new SimulatedClock();
  const happenings: Happening[] = [];
  const bus = {
    async streamInfo() {
      if (serverNow instanceof Fault) throw serverNow;
      return { seenAt: serverNow };
    },
  };
  const here = serverNow instanceof Fault ? storedAt + 3_600_000 : serverNow + aheadMs;
  const runtime = {
    clock: { now: () => here, monotonic: () => clock.monotonic(), after: clock.after.bind(clock) },
    random: seededRandom(1),
    announce: (happening: Happening) => void happenings.push(happening),
  };
  return { deps: { bus, runtime, names: subjects() } as unknown as TaskDeps, happenings };
}

const arrival = (timeouts: ActivityTask["timeouts"], mayHaveBegun = false): Arrival => ({
  task: ActivityTask.parse({
    ...{ v: 1, instanceId: "i", execution: 1, of: 2, attempt: 1, name: "a", input: { json: 1 } },
    // By the clock of an owner that is a day off.
    ...{ scheduledAt: storedAt - 86_400_000, timeouts, reportStart: true },
  }),
  delivery: { at: storedAt } as Delivery,
  mayHaveBegun,
});

it.each([
  ["schedule_to_start", { scheduleToStartMs: 5000 }],
  ["schedule_to_close", { scheduleToCloseMs: 5000 }],
  ["schedule_to_start", { scheduleToStartMs: 5000, scheduleToCloseMs: 5000 }],
])("expires with its %s, not before", async (timeout, timeouts) => {
  const before = setUp(storedAt + 4999).deps;
  expect(looksExpired(before, arrival(timeouts))).toBe(false);
  expect(await expiryOf(before, arrival(timeouts))).toBeUndefined();
  const { deps } = setUp(storedAt + 5000);
  expect(looksExpired(deps, arrival(timeouts))).toBe(true);
  expect(await expiryOf(deps, arrival(timeouts))).toEqual({ timeout, ms: 5000, waitedMs: 5000 });
});

it("is judged by the server's clock, not by a worker's that is an hour ahead", async () => {
  const { deps } = setUp(storedAt + 10, 3_600_000);
  const fresh = arrival({ scheduleToCloseMs: 5000 });
  expect(looksExpired(deps, fresh), "only a suspicion").toBe(true);
  expect(await expiryOf(deps, fresh)).toBeUndefined();
});

it("has met schedule-to-start where somebody may have begun it", async () => {
  const { deps } = setUp(storedAt + 60_000);
  expect(await expiryOf(deps, arrival({ scheduleToStartMs: 5000 }, true))).toBeUndefined();
  const both = arrival({ scheduleToStartMs: 5000, scheduleToCloseMs: 30_000 }, true);
  expect(await expiryOf(deps, both)).toMatchObject({ timeout: "schedule_to_close" });
});

it("is run where the server does not say what time it is", async () => {
  const away = new Fault("transient", { code: "timeout", message: "no answer" });
  const { deps, happenings } = setUp(away);
  expect(await expiryOf(deps, arrival({ scheduleToCloseMs: 5000 }))).toBeUndefined();
  expect(happenings).toMatchObject([{ kind: "fault", where: "worker.expired" }]);
});

it("never expires without a deadline", () => {
  const { deps } = setUp(storedAt + 86_400_000);
  expect(looksExpired(deps, arrival({ startToCloseMs: 10, heartbeatMs: 10 }))).toBe(false);
});
