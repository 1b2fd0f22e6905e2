/** A report by the clock of a shop. Run it: npx vitest run examples/schedule */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("one report a day, at six in Berlin, summer and winter, also when the orchestrator dies", async () => {
  await using env = await testEnvironment({ app, startsAt: "2027-10-30T12:00", timeZone: "Europe/Berlin" });
  await env.client.schedules.create("north", {
    orchestration: "daily-report",
    input: { shop: "north" },
    cron: "0 6 * * *",
    timeZone: "Europe/Berlin",
  });
  await env.skip("1d"); // the night in which the clocks go back
  await env.killOrchestrator();
  await env.skip("1d");
  const { recent } = await env.client.schedules.describe("north");
  expect(recent.map(({ at }) => new Date(at).toISOString()).sort()).toEqual([
    "2027-10-31T05:00:00.000Z",
    "2027-11-01T05:00:00.000Z",
  ]);
});
