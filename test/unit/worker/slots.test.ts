import { expect, it } from "vitest";
import { type Slot, Slots } from "../../../services/worker/slots.ts";

it("gives no more than it has, and again what came back", () => {
  const slots = new Slots(2);
  const first = slots.tryTake();
  expect(slots.tryTake()).toBeDefined();
  expect(slots.tryTake()).toBeUndefined();
  first?.release();
  expect(slots.free).toBe(1);
  expect(slots.tryTake()).toBeDefined();
});

it("releases a slot once, however often it is asked to", () => {
  const slots = new Slots(1);
  const slot = slots.tryTake();
  slot?.release();
  slot?.release();
  expect(slots.used).toBe(0);
  const given: Slot[] = [];
  slots.request((taken) => given.push(taken));
  slots.request((taken) => given.push(taken));
  slot?.release();
  expect(given).toHaveLength(1);
});

it("serves those who wait in the order they came, except who left", () => {
  const slots = new Slots(1);
  const held = slots.tryTake();
  const order: string[] = [];
  slots.request(() => order.push("first"));
  const second = slots.request(() => order.push("second"));
  expect(second.leave()).toBe(true);
  expect(second.leave()).toBe(false);
  held?.release();
  expect(order).toEqual(["first"]);
  expect(slots.used).toBe(1);
});

it("stops waiting when told, without losing a slot", async () => {
  const slots = new Slots(1);
  const held = slots.tryTake();
  const stop = new AbortController();
  const waiting = slots.take(stop.signal);
  stop.abort();
  expect(await waiting).toBeUndefined();
  held?.release();
  expect(slots.free).toBe(1);
  expect(await slots.take(stop.signal)).toBeUndefined();
  expect(slots.free).toBe(1);
});
