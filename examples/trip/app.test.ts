/** A trip, booked whole or not at all. Run it: npx vitest run examples/trip */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

/** What is booked and not cancelled, by number. */
async function world() {
  const env = await testEnvironment({ app });
  const booked = new Map<string, string>();
  env.fake(app.book, (booking) => {
    if (booking.what === "yacht")
      throw Object.assign(new Error("none left"), { code: "sold_out", retryable: false });
    booked.set(booking.number, booking.what);
    return booking;
  });
  env.fake(app.cancelBooking, ({ number }) => {
    booked.delete(number);
    return null;
  });
  return { env, booked };
}

test("a trip that is paid is booked, although a worker dies", async () => {
  const { env, booked } = await world();
  await using _ = env;
  const trip = await env.client.start(app.trip, { what: ["train", "hotel"] });
  await env.killWorker();
  await trip.signal("paid", 2);
  expect((await trip.result()).map(({ what }) => what)).toEqual(["train", "hotel"]);
  expect([...booked.values()]).toEqual(["train", "hotel"]);
});

test("one that is not paid in time is cancelled whole", async () => {
  const { env, booked } = await world();
  await using _ = env;
  const trip = await env.client.start(app.trip, { what: ["train", "hotel"] });
  await env.skip("2m");
  await expect(trip.result()).rejects.toMatchObject({ code: "timeout" });
  expect(booked.size).toBe(0);
});

test("what is sold out takes the rest back", async () => {
  const { env, booked } = await world();
  await using _ = env;
  const trip = await env.client.start(app.trip, { what: ["train", "yacht"] });
  await expect(trip.result()).rejects.toThrow("none left");
  expect(booked.size).toBe(0);
});
