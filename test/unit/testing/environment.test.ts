import { expect, test } from "vitest";
import { z } from "zod";
import * as cartApp from "../../../examples/cart/app.ts";
import * as firstApp from "../../../examples/first/app.ts";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { everySeed, type TestEnvironment, testEnvironment } from "../../../shared/testing/index.ts";

const patient = defineOrchestration("patient", {
  input: z.object({ days: z.number() }),
  output: z.string(),
  async run(ctx, { days }) {
    await ctx.sleep(`${days}d`);
    return "done";
  },
});
const charge = defineActivity("charge", {
  input: z.number(),
  output: z.string(),
  startToClose: "10m",
  retry: { maxAttempts: 2 },
  run: async () => {
    throw new Error("no test may charge anybody");
  },
});
const buy = defineOrchestration("buy", { run: (ctx, amount: number) => ctx.run(charge, amount) });
const counter = defineSession("counter", {
  idleTimeout: "2m",
  init: async () => ({ total: 0 }),
  calls: { add: call({ run: (state: { total: number }, n: number) => (state.total += n) }) },
});
const count = defineOrchestration("count", {
  async run(ctx, numbers: number[]) {
    await using session = await ctx.openSession(counter, {
      onLost: "reclaim",
      recovery: { maxAutoRetries: 9 },
    });
    const totals: number[] = [];
    for (const number of numbers) {
      totals.push(await session.add(number));
      await ctx.waitForSignal("next");
    }
    return totals;
  },
});
const app = { patient, charge, buy, counter, count };

test("the answer of an update that was only accepted is awaited in the test's time", async () => {
  const slow = defineOrchestration("slow", {
    async run(ctx) {
      ctx.onUpdate("later", async () => {
        await ctx.sleep("1h");
        return "an hour later";
      });
      await ctx.waitForSignal("end");
    },
  });
  await using env = await testEnvironment({ app: { slow } });
  const handle = await env.client.start(slow);
  const accepted = await env.client.startUpdate(handle.instanceId, "later");
  expect(await accepted.result({ timeout: "2h" })).toBe("an hour later");
});

test("a result is there as soon as the work is done, a month later by the clock of the test", async () => {
  await using env = await testEnvironment({ app });
  const before = env.now().getTime();
  const handle = await env.client.start(patient, { days: 30 }, { id: "p" });
  await env.skip("29d");
  expect((await handle.status()).status).toBe("running");
  await env.skip("1d");
  expect((await handle.status()).status).toBe("completed");
  expect(await handle.result()).toBe("done");
  expect(env.now().getTime() - before).toBeGreaterThanOrEqual(30 * 86_400_000);
  await env.expectHistory(handle, ["timer.created", "timer.fired", "instance.completed"]);
});

test("waiting for a result skips by itself", async () => {
  await using env = await testEnvironment({ app });
  const handles = await Promise.all([1, 400, 3].map((days) => env.client.start(patient, { days })));
  expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual(["done", "done", "done"]);
});

test("a fake stands in for an activity, and may fail, take long, or hang", async () => {
  await using env = await testEnvironment({ app });
  env.fake(charge, (amount) => `paid ${amount}`);
  expect(await (await env.client.start(buy, 7)).result()).toBe("paid 7");
  env.fake(charge, async (amount, ctx) => {
    if (ctx.attempt === 1) throw new Error("card reader is away");
    await env.sleep("9m");
    return `paid ${amount} at last`;
  });
  expect(await (await env.client.start(buy, 8)).result()).toBe("paid 8 at last");
  env.fake(charge, () => new Promise(() => undefined));
  const hanging = await env.client.start(buy, 9);
  await env.skip("30m");
  await expect(hanging.result()).rejects.toMatchObject({ code: "timeout" });
});

test("fakes have the types of what they stand for", async () => {
  await using env = await testEnvironment({ app });
  // @ts-expect-error an activity that returns text
  env.fake(charge, () => 1);
  // @ts-expect-error a call that takes a number
  env.fakeSession(counter, { add: (_state, n: string) => n.length });
  // @ts-expect-error no such call
  expect(() => env.fakeSession(counter, { subtract: () => 0 })).toThrow('there is no "subtract"');
});

test("the worker that holds a session is killed: its state is gone, and the code learns what that means", async () => {
  await using env = await testEnvironment({ app });
  const handle = await env.client.start(count, [1, 2, 3], { id: "c" });
  await env.skip("1s");
  await handle.signal("next");
  await env.skip("1s");
  await env.kill(counter);
  await handle.signal("next");
  await handle.signal("next");
  expect(await handle.result()).toEqual([1, 3, 3]);
  await env.expectHistory(handle, ["session.activated", "session.lost", "session.activated"]);
});

test("a death at a point of sessions meets the session that was named", async () => {
  const other = defineSession("other", {
    init: async () => ({ total: 0 }),
    calls: { add: call({ run: (state: { total: number }, n: number) => (state.total += n) }) },
  });
  const both = defineOrchestration("both", {
    async run(ctx) {
      await using mine = await ctx.openSession(counter, { onLost: "reclaim" });
      await using theirs = await ctx.openSession(other, { id: "theirs", onLost: "reclaim" });
      await mine.add(1);
      await theirs.add(1);
      return [await mine.add(1), await theirs.add(1)];
    },
  });
  for (const named of [other, "theirs"] as const) {
    await using env = await testEnvironment({ app: { counter, other, both }, workers: 3 });
    await env.kill(named, { at: "after-activation" });
    const handle = await env.client.start(both);
    await handle.result();
    await env.expectHistory(handle, [{ kind: "session.lost", sessionId: "theirs" }]);
  }
});

test("a whole session can be faked, and an idle one is parked when the time has come", async () => {
  await using env = await testEnvironment({ app });
  env.fakeSession(counter, { add: (state, n) => (state.total += n * 100) }, () => ({ total: 5 }));
  const handle = await env.client.start(count, [1, 2]);
  await env.skip("5m");
  await env.expectHistory(handle, ["session.activated", "session.parked"]);
  await handle.signal("next");
  await handle.signal("next");
  expect(await handle.result()).toEqual([105, 205]);
});

test("signals, queries and updates are sent from the test", async () => {
  await using env = await testEnvironment({ app: cartApp });
  const handle = await env.client.start(cartApp.cart);
  expect(await handle.update(cartApp.add, { name: "tea", price: 4 })).toBe(1);
  expect(await handle.query(cartApp.contents)).toEqual([{ name: "tea", price: 4 }]);
  await handle.signal("checkout");
  expect(await handle.result()).toBe(4);
});

test("every place where somebody can die is tried, and an outage", async () => {
  await using env = await testEnvironment({ app: firstApp });
  const places = await env.everyFaultPoint(async (each) => {
    const handle = await each.client.start(firstApp.measure, { words: ["a", "bb"] });
    await each.outage("1s");
    await handle.result();
  });
  expect(places).toEqual(
    expect.arrayContaining(["after-claim", "after-call", "after-activity", "after-commit"]),
  );
});

test("what will never come is said so, with the reason", async () => {
  await using env = await testEnvironment({ app: cartApp, seed: 5 });
  const handle = await env.client.start(cartApp.cart);
  await expect(handle.result()).rejects.toThrow(/will not come.*seed 5/s);
});

test("a history that is another is shown as a table with the first difference", async () => {
  await using env = await testEnvironment({ app });
  env.fake(charge, () => "paid");
  const handle = await env.client.start(buy, 1);
  await handle.result();
  await expect(env.expectHistory(handle, ["timer.created", "instance.completed"])).rejects.toThrow(
    /> +1 +timer\.created +instance\.completed[\s\S]*activity\.scheduled +name=charge/,
  );
});

test("a run that fails among many is shown with its history, once", async () => {
  const aDay = async (each: TestEnvironment) => {
    await (await each.client.start(patient, { days: 1 }, { id: "p" })).result();
  };
  const planted = async (each: TestEnvironment) => {
    await aDay(each);
    throw new Error("planted");
  };
  const table = "planted\\n\\nThe history of p:\\n#[^]*timer\\.fired";
  await expect(everySeed({ app, seeds: [7] }, planted)).rejects.toThrow(
    new RegExp(`failed with seed 7: ${table}`),
  );
  await using env = await testEnvironment({ app });
  await expect(env.everyFaultPoint(planted)).rejects.toThrow(
    new RegExp(`failed without any fault \\(seed 1\\): ${table}`),
  );
  const other = everySeed({ app, seeds: [7] }, async (each) => {
    await aDay(each);
    await each.expectHistory("p", ["timer.fired", "timer.fired"]);
  });
  const { message } = await other.then(Object, (error: Error) => error);
  expect(message.match(/timer\.created/g)).toEqual(["timer.created"]);
});
