/** The same test runs without a server and on a real one, by one option. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import * as cartApp from "../../../examples/cart/app.ts";
import * as firstApp from "../../../examples/first/app.ts";
import { connectBus } from "../../../shared/bus/index.ts";
import { defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { testEnvironment } from "../../../shared/testing/index.ts";
import { startNats, type TestNats } from "../../support/nats/nats-server.ts";

const flaky = defineActivity("flaky", {
  retry: { maxAttempts: 3, initialDelay: "1m" },
  run: async (ctx) => {
    if (ctx.attempt < 3) throw new Error("not yet");
    return ctx.attempt;
  },
});
const patient = defineOrchestration("patient", {
  async run(ctx) {
    const from = ctx.now();
    await ctx.sleep("30d");
    const attempts = await ctx.run(flaky, null);
    return { attempts, days: Math.floor((ctx.now() - from) / 86_400_000) };
  },
});
const app = { flaky, patient };

let server: TestNats;
beforeAll(async () => {
  server = await startNats();
});
afterAll(() => server?.stop());

test("the address of a server", async () => {
  await using env = await testEnvironment({ app, nats: server.url });
  const handle = await env.client.start(patient);
  expect(await handle.result()).toMatchObject({ days: 30 });
});

describe.each([{ nats: undefined }, { nats: "embedded" }])("on $nats", ({ nats }) => {
  test("a month and two back-offs are skipped", async () => {
    await using env = await testEnvironment({ app, nats });
    const handle = await env.client.start(patient);
    expect(await handle.result()).toEqual({ attempts: 3, days: 30 });
    await env.expectHistory(handle, ["timer.created", "timer.fired", "instance.completed"]);
  });

  test("a calendar can be skipped part of the way", async () => {
    await using env = await testEnvironment({ app, nats, startsAt: "2027-03-27", timeZone: "Europe/Berlin" });
    const handle = await env.client.start(patient);
    await env.skip("29d");
    expect((await handle.status()).status).toBe("running");
    expect(env.now().toISOString().slice(0, 10)).toBe("2027-04-24");
  });

  test("signals, queries and updates", async () => {
    await using env = await testEnvironment({ app: cartApp, nats });
    const handle = await env.client.start(cartApp.cart);
    expect(await handle.update(cartApp.add, { name: "tea", price: 4 })).toBe(1);
    expect(await handle.query(cartApp.contents)).toEqual([{ name: "tea", price: 4 }]);
    await handle.signal("checkout");
    expect(await handle.result()).toBe(4);
  });

  test("whoever dies after a call is replaced", async () => {
    await using env = await testEnvironment({ app: firstApp, nats });
    await env.kill(firstApp.tally, { at: "after-call" });
    await env.kill(firstApp.tally, { at: "after-commit", count: 3 });
    const handle = await env.client.start(firstApp.measure, { words: ["to", "be"] });
    await handle.result();
    await env.expectHistory(handle, ["session.activated", "session.lost", "session.activated"]);
  });

  test("an outage is survived", async () => {
    await using env = await testEnvironment({ app: firstApp, nats });
    const handle = await env.client.start(firstApp.measure, { words: ["to", "be"] });
    await env.outage("1s");
    expect(await handle.result()).toBeLessThanOrEqual(4);
  });
});

test("nothing is left on a server that goes on", async () => {
  const bus = await connectBus({ url: server.url, announce: silent });
  expect(await bus.streamNames(">")).toEqual([]);
  await bus.close();
});

test("without a container engine it says what is missing", async () => {
  vi.stubEnv("DOCKER_HOST", "tcp://127.0.0.1:1");
  await expect(testEnvironment({ app, nats: "container" })).rejects.toThrow(
    /finds no container engine: .+\. "docker info" must answer/,
  );
  vi.unstubAllEnvs();
});

test("faults of the twin are refused on a server", async () => {
  await expect(testEnvironment({ app, nats: "embedded", faults: "some" })).rejects.toThrow(
    /leave out "faults"/,
  );
});

test("a server that is not there is said so, and nothing stays open", async () => {
  await expect(testEnvironment({ app, nats: "nats://127.0.0.1:1" })).rejects.toThrow(
    /no NATS server answers at nats:\/\/127\.0\.0\.1:1:/,
  );
});
