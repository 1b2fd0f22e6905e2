import { expect, test } from "vitest";
import { TurnSlots } from "../../../services/orchestrator/turn-slots.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

function crew(slots: TurnSlots) {
  const began: string[] = [];
  const begin = (name: string) => {
    const who = { name };
    const wait = slots.take(who);
    if (wait) void wait.then(() => began.push(name));
    else began.push(name);
    return who;
  };
  return { began, begin };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("so many at once, the others in the order they came", async () => {
  const slots = new TurnSlots(new SimulatedClock(), 2);
  const { began, begin } = crew(slots);
  const [a, b, c] = ["a", "b", "c", "d"].map(begin);
  expect(began).toEqual(["a", "b"]);
  slots.give(b ?? {});
  await settled();
  expect(began).toEqual(["a", "b", "c"]);
  slots.give(a ?? {});
  slots.give(c ?? {});
  await settled();
  expect(began).toEqual(["a", "b", "c", "d"]);
});

test("a turn that takes long holds nobody up, and gives nothing back twice", async () => {
  const clock = new SimulatedClock();
  const slots = new TurnSlots(clock, 2);
  const { began, begin } = crew(slots);
  const stuck = [begin("a"), begin("b")];
  const c = begin("c");
  begin("d");
  begin("e");
  await clock.advance(999);
  expect(began).toEqual(["a", "b"]);
  await clock.advance(1);
  expect(began).toEqual(["a", "b", "c", "d"]);
  for (const who of stuck) slots.give(who);
  await settled();
  expect(began).toEqual(["a", "b", "c", "d"]);
  slots.give(c);
  await settled();
  expect(began).toEqual(["a", "b", "c", "d", "e"]);
});

test("no timer while nobody waits", async () => {
  const clock = new SimulatedClock();
  const slots = new TurnSlots(clock, 1);
  const { begin } = crew(slots);
  const a = begin("a");
  expect(clock.pending).toBe(0);
  const b = begin("b");
  expect(clock.pending).toBe(1);
  slots.give(a);
  slots.give(b);
  await clock.advance(1000);
  expect(clock.pending).toBe(0);
});
