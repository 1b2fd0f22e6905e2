import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { setupOf, startAll, startEarly } from "../../../shared/runtime/index.ts";

/** Answers with its task, and whether it got the task at its start. */
const code = `const { parentPort, workerData, MessagePort } = require("node:worker_threads");
if (workerData instanceof MessagePort) workerData.once("message", (setup) => parentPort.postMessage({ setup, early: true }));
else parentPort.postMessage({ setup: workerData, early: false });`;

test("the first setup goes to the thread that was started early, the next to a new one", async () => {
  const threads: Worker[] = [];
  const give = startEarly<string>((options) => {
    const thread = new Worker(code, { ...options, eval: true });
    threads.push(thread);
    return thread;
  });
  expect(threads).toHaveLength(1);
  const first = give("one");
  expect(first).toBe(threads[0]);
  expect((await once(first, "message"))[0]).toEqual({ setup: "one", early: true });
  const second = give("two");
  expect(second).toBe(threads[1]);
  expect((await once(second, "message"))[0]).toEqual({ setup: "two", early: false });
});

test("a thread takes its setup from its data or from the port it was given instead", async () => {
  expect(await setupOf({ ttlMs: 1 })).toEqual({ ttlMs: 1 });
  const { port1, port2 } = new MessageChannel();
  port1.postMessage({ ttlMs: 2 });
  port1.close();
  expect(await setupOf(port2)).toEqual({ ttlMs: 2 });
});

test("parts start together; if one fails, the others are waited for before it is thrown", async () => {
  const started: string[] = [];
  const gate = deferred();
  const slow = {
    start: async () => {
      started.push("slow begins");
      await gate.promise;
      started.push("slow is there");
    },
  };
  const broken = {
    start: async () => {
      started.push("broken");
      throw new Error("it cannot");
    },
  };
  const all = startAll([slow, undefined, broken]);
  expect(started).toEqual(["slow begins", "broken"]);
  gate.resolve();
  await expect(all).rejects.toThrow("it cannot");
  expect(started).toEqual(["slow begins", "broken", "slow is there"]);
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
