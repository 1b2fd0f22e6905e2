/** A conversation whose model is a fake. Run it: npx vitest run examples/agent */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

test("every signal is a turn, and bye shows them all", async () => {
  await using env = await testEnvironment({ app });
  const turns: { who: "user" | "agent"; text: string }[] = [];
  env.fakeSession(
    app.conversation,
    {
      say: (_state, text) => {
        turns.push({ who: "user", text }, { who: "agent", text: `you said ${text}` });
        return { text: `you said ${text}`, intent: "talking", stopped: false };
      },
      transcript: () => turns,
    },
    () => ({ turns }),
  );
  const handle = await env.client.start(app.agentConversation, {});
  await handle.signal("say", "hello");
  await handle.signal("say", 7); // not a text: left out, and the conversation lives
  await handle.signal("say", "bye");
  expect(await handle.result()).toEqual([
    { who: "user", text: "hello" },
    { who: "agent", text: "you said hello" },
  ]);
});
