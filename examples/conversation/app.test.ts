/** The conversation of a key, with its worker killed. Run it: npx vitest run examples/conversation */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

const config = { greeting: "Hello." };

test("a client and an orchestration share the conversation of a user", async () => {
  await using env = await testEnvironment({ app });
  const ada = env.client.session(app.conversation, { key: "ada", config, onLost: "reclaim" });
  expect(await ada.say("good morning")).toMatch(/1 things/);
  const reminder = await env.client.start(app.remind, { user: "ada", of: "tea" });
  expect(await reminder.result()).toMatch(/2 things/);
  expect(await ada.recall()).toEqual(["good morning", "(reminder: tea)"]);
  const words: unknown[] = [];
  for await (const word of ada.stream("say", "bye")) words.push(word);
  expect(words.join(" ")).toMatch(/3 things, the last: bye/);
});

test("after its worker was killed the conversation goes on with a new state, and nobody waits in vain", async () => {
  await using env = await testEnvironment({ app });
  const ada = env.client.session(app.conversation, { key: "ada", config, onLost: "reclaim" });
  await ada.say("one");
  await env.kill(app.conversation);
  expect(await ada.say("two")).toMatch(/1 things, the last: two/);
});

test("the pool is warm, and answers a client", async () => {
  await using env = await testEnvironment({ app });
  expect(await env.client.pool(app.translator).translate("hello")).toBe("bonjour");
});
