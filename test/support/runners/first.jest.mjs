/** Run by jest, which gives each test file globals of its own. Plain JavaScript: no compiler is set up here. */
import { defineActivity, defineOrchestration } from "holdfast";
import { testEnvironment } from "holdfast/testing";

const lengthOf = defineActivity("length-of", { run: async (_ctx, word) => word.length });
const measure = defineOrchestration("measure", {
  async run(ctx, words) {
    await ctx.sleep("30d");
    const lengths = await Promise.all(words.map((word) => ctx.run(lengthOf, word)));
    return lengths.reduce((sum, length) => sum + length, 0);
  },
});

let env;
beforeEach(async () => {
  env = await testEnvironment({ app: { lengthOf, measure } });
});
afterEach(() => env.close());

test("measures words", async () => {
  const handle = await env.client.start(measure, ["to", "be"]);
  expect(await handle.result()).toBe(4);
});

test("survives a death anywhere", async () => {
  await env.everyFaultPoint(async (each) => {
    const handle = await each.client.start(measure, ["to", "be"]);
    expect(await handle.result()).toBe(4);
  });
});

test("errors keep their class and their code", async () => {
  env.fake(lengthOf, () => {
    throw new TypeError("no word");
  });
  const handle = await env.client.start(measure, ["to"]);
  await expect(handle.result()).rejects.toMatchObject({ code: "TypeError", message: "no word" });
});
