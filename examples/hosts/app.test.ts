/** States of Python and Go without either: their calls are faked. Run it: npx vitest run examples/hosts */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

const mails = ["You have WON", "see you at ten", "click here"];
const isSpam = (text: string) => /WON|click/.test(text);

test("every mail is sorted, also when the process with the model dies between two of them", async () => {
  await using env = await testEnvironment({ app });
  let learnt = 0;
  env.fakeSession(
    app.mailModel,
    { classify: (_state, text) => ({ label: isSpam(text) ? "spam" : "ham", score: 1 }) },
    (config) => {
      learnt += config?.mails ?? 0;
      return {};
    },
  );
  await env.kill(app.mailModel, { at: "after-call", count: 2 });
  const handle = await env.client.start(app.sortMails, { mails });
  expect((await handle.result()).map(({ label }) => label)).toEqual(["spam", "ham", "spam"]);
  expect(learnt, "learnt anew by the next process").toBe(2000);
});

test("what Go has counted is lost with its process, and the orchestration is told", async () => {
  await using env = await testEnvironment({ app });
  let total = 0;
  env.fakeSession(app.goCounter, { add: (_state, n) => (total += n) }, () => ({ made: (total = 0) }));
  const handle = await env.client.start(app.countInGo, { numbers: [1, 2, 3] });
  expect(await handle.result()).toBe(6);
  await env.kill(app.goCounter, { at: "after-call", count: 2 });
  const lost = await env.client.start(app.countInGo, { numbers: [1, 2, 3] });
  await expect(lost.result()).rejects.toMatchObject({ code: "session_lost" });
});
