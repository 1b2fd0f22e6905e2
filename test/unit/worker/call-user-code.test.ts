import { expect, it } from "vitest";
import { callUserCode } from "../../../services/worker/activities/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

const never = () => new Promise(() => undefined);

it("takes values, promises, throws and odd thenables for what they are", async () => {
  const clock = new SimulatedClock();
  const settle = (run: () => unknown) => callUserCode(clock, new AbortController().signal, {}, run).settled;
  expect(await settle(() => 1)).toEqual({ kind: "returned", value: 1 });
  expect(await settle(async () => 2)).toEqual({ kind: "returned", value: 2 });
  expect(
    await settle(() => {
      throw undefined;
    }),
  ).toEqual({ kind: "threw", error: undefined });
  const twice = {
    then(resolve: (value: number) => void, reject: (error: Error) => void) {
      resolve(3);
      reject(new Error("and again"));
    },
  };
  expect(await settle(() => twice)).toEqual({ kind: "returned", value: 3 });
  const rude = {
    get then(): never {
      throw new Error("do not ask");
    },
  };
  expect(await settle(() => rude)).toMatchObject({ kind: "threw" });
  expect(clock.pending).toBe(0);
});

it("measures the heartbeat from the last beat", async () => {
  const clock = new SimulatedClock();
  const call = callUserCode(clock, new AbortController().signal, { heartbeatMs: 100 }, never);
  let settled: string | undefined;
  void call.settled.then(({ kind }) => {
    settled = kind;
  });
  for (let i = 0; i < 5; i++) {
    await clock.advance(90);
    call.beat();
  }
  expect(settled).toBeUndefined();
  await clock.advance(99);
  expect(settled).toBeUndefined();
  await clock.advance(2);
  expect(settled).toBe("heartbeat");
  expect(clock.pending).toBe(0);
});

it("ends by the first of timeout, abort and code, and leaves no timer", async () => {
  const clock = new SimulatedClock();
  const limits = { startToCloseMs: 50, heartbeatMs: 500 };
  const slow = callUserCode(clock, new AbortController().signal, limits, never);
  await clock.advance(60);
  expect(await slow.settled).toEqual({ kind: "start_to_close" });
  const overdue = callUserCode(clock, new AbortController().signal, { scheduleToCloseMs: 50 }, never);
  await clock.advance(50 + 1010);
  expect(await overdue.settled, "the engine judges first").toEqual({ kind: "schedule_to_close" });
  const stop = new AbortController();
  const stopped = callUserCode(clock, stop.signal, limits, never);
  stop.abort();
  expect(await stopped.settled).toEqual({ kind: "interrupted" });
  const before = callUserCode(clock, stop.signal, limits, () => {
    throw new Error("must not run");
  });
  expect(await before.settled).toEqual({ kind: "interrupted" });
  expect(clock.pending).toBe(0);
});
