/** The smallest things, without a server. Run it: npx vitest run examples/basics */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("steps in sequence, at once and in the orchestrator's own process, whoever dies meanwhile", async () => {
  await using env = await testEnvironment({ app });
  await env.everyFaultPoint(async (each) => {
    const steps = await each.client.start(app.steps, { n: 3 });
    const fanOut = await each.client.start(app.fanOut, { n: 4 });
    const locally = await each.client.start(app.helloLocally, { name: "Ada" });
    expect([await steps.result(), await fanOut.result(), await locally.result()]).toEqual([
      3,
      6,
      "Hello, Ada!",
    ]);
  });
});

test("an activity is faked", async () => {
  await using env = await testEnvironment({ app });
  env.fake(app.greet, (name) => `Bonjour, ${name} !`);
  expect(await (await env.client.start(app.hello, { name: "Ada" })).result()).toBe("Bonjour, Ada !");
});

test("a signal is waited for over an outage, and a sleep takes as long as it says", async () => {
  await using env = await testEnvironment({ app });
  const waiting = await env.client.start(app.waitForSignal);
  await env.outage("20s");
  await waiting.signal("go", { paid: true });
  expect(await waiting.result()).toEqual({ paid: true });
  const sleepy = await env.client.start(app.sleepy, { ms: 30 * 86_400_000 });
  expect(await sleepy.result()).toBeGreaterThanOrEqual(30 * 86_400_000);
});
