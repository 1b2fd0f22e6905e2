import { expect, test } from "vitest";
import { z } from "zod";
import * as cartApp from "../../../examples/cart/app.ts";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  defineSignal,
} from "../../../shared/definitions/index.ts";
import {
  callCompleted,
  cancelled,
  childCompleted,
  completed,
  elapsed,
  failed,
  given,
  sessionActivated,
  sessionLost,
  signalled,
  updated,
} from "../../../shared/testing/index.ts";

const reserve = defineActivity("reserve", {
  input: z.string(),
  output: z.number(),
  retry: { maxAttempts: 2, initialDelay: "1m" },
  run: () => 1,
});
const ship = defineActivity("ship", { input: z.number(), output: z.string(), run: () => "" });
const paid = defineSignal("paid", { payload: z.object({ by: z.string() }) });
const order = defineOrchestration("order", {
  input: z.string(),
  async run(ctx, item) {
    const place = await ctx.run(reserve, item);
    const { by } = await ctx.waitForSignal(paid);
    await ctx.sleep("1d");
    return `${by}: ${await ctx.run(ship, place)}`;
  },
});
const app = { reserve, ship, order };

test("given what happened, when something happens, then the code does this", async () => {
  const story = await given(app, order, "tea");
  await story.given(completed(reserve, 7), signalled(paid, { by: "ann" }));
  await story.when(elapsed("1d"));
  story.expect("timer.fired", { kind: "activity.scheduled", name: "ship", input: 7 });
  await story.when(completed(ship, "on its way"));
  story.expect("activity.completed", { kind: "instance.completed", output: "ann: on its way" });
  expect(story.output).toBe("ann: on its way");
});

test("a failed attempt is tried again in its time, and then is the error of the code", async () => {
  const story = await given(app, order, "tea");
  await story.when(failed(reserve, "no room"));
  story.expect({ kind: "activity.attempt_failed", error: { message: "no room" } });
  await story.when(elapsed("1m"), failed(reserve, { code: "full", message: "still none", retryable: false }));
  expect(story.happened.at(-1)).toMatchObject({ kind: "instance.failed", error: { code: "full" } });
});

test("the first difference is shown beside the whole history", async () => {
  const story = await given(app, order, "tea");
  await story.when(completed(reserve, 7));
  expect(() => story.expect("activity.completed", { kind: "activity.scheduled", name: "ship" })).toThrow(
    /> +2 +activity\.scheduled name="ship" +\(nothing\)[\s\S]*activity\.scheduled +name=reserve input=tea/,
  );
  expect(() => story.expect({ kind: "activity.completed", output: 8 })).toThrow(/output=8 +.*output=7/);
});

test("what cannot happen is said with what could", async () => {
  const story = await given(app, order, "tea");
  await expect(story.when(completed(ship, "x"))).rejects.toThrow(
    /nothing called ship is open; open are: reserve/,
  );
  await expect(story.when(sessionLost(counter))).rejects.toThrow(/no session of type counter/);
});

const counter = defineSession("counter", {
  init: async () => ({ total: 0 }),
  calls: { add: call({ run: (state: { total: number }, n: number) => (state.total += n) }) },
});
const parent = defineOrchestration("parent", {
  async run(ctx) {
    await using session = await ctx.openSession(counter, { onLost: "fail" });
    const one = await session.add(1);
    const two = await session.add(one).catch(() => -1);
    return [two, await ctx.child(order, "tea")];
  },
});

test("sessions, their loss, and children", async () => {
  const story = await given({ ...app, counter, parent }, parent);
  await story.given(sessionActivated(counter), callCompleted(counter, "add", 1));
  await story.when(sessionLost(counter));
  expect(story.happened.map(({ kind }) => kind)).toContain("child.scheduled");
  await story.when(childCompleted(order, "done"));
  expect(story.output).toEqual([-1, "done"]);
});

test("updates and cancellation", async () => {
  const story = await given(cartApp, cartApp.cart);
  await story.when(updated(cartApp.add, { name: "tea", price: 4 }));
  story.expect("update.accepted", "update.completed");
  await expect(story.when(updated(cartApp.add, { name: "tea", price: 4 }))).rejects.toThrow(/refused/);
  await story.when(cancelled("enough"));
  expect(story.status).toBe("cancelled");
});

test("facts have the types of what they are about", () => {
  // @ts-expect-error the output is a number
  completed(reserve, "seven");
  // @ts-expect-error the payload has a name
  signalled(paid, { from: "ann" });
  // @ts-expect-error no such call
  callCompleted(counter, "subtract", 1);
  // @ts-expect-error the call returns a number
  callCompleted(counter, "add", "one");
});

test("code that does something else the second time is found", async () => {
  let runs = 0;
  const moody = defineOrchestration("moody", {
    run: async (ctx) => String(runs++ === 0 ? await ctx.run(reserve, "tea") : await ctx.run(ship, 1)),
  });
  const story = await given({ ...app, moody }, moody);
  await expect(story.when(completed(reserve, 1))).rejects.toThrow(/replay disagreed/);
});
