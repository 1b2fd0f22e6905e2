/** The samples with the kills and restarts their texts describe. Run it: npx vitest run examples/source-designs */
import { testEnvironment } from "holdfast/testing";
import { beforeEach, describe, expect, test } from "vitest";
import * as s3 from "./activity-sessions.ts";
import * as app from "./app.ts";
import * as s0 from "./handler-owned-sessions.ts";
import * as s1 from "./movable-sessions.ts";
import * as s2 from "./resource-sessions.ts";
import * as s4 from "./worker-profiles.ts";

const journals = [s0.journal, s1.journal, s2.journal, s3.journal, s4.journal];
const count = (journal: readonly string[], line: string) => journal.filter((one) => one === line).length;

beforeEach(() => {
  for (const journal of journals) journal.length = 0;
  // The workers of all environments live in this process.
  for (const memory of [s1.states, s2.disks, s3.conversations]) memory.clear();
});

describe("S0, sessions owned by a handler", () => {
  const docs = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? `doc ${i}!` : `doc ${i}`));
  const labels = docs.map((doc) => (doc.includes("!") ? "spam" : "ham"));

  test("the model is loaded once for all documents, and unloaded by close", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s0.classifyDocs, { docs });
    expect(await handle.result()).toEqual(labels);
    await env.skip("1s");
    expect(s0.journal).toEqual(["load model-path", "unload model-path"]);
  });

  test("worker crash during an active session: init is paid once more, no document is missing", async () => {
    await using env = await testEnvironment({ app });
    await env.kill(app.mlClassifier, { at: "after-call" });
    const handle = await env.client.start(s0.classifyDocs, { docs });
    expect(await handle.result()).toEqual(labels);
    expect(count(s0.journal, "load model-path")).toBe(2);
  });

  test("whoever dies wherever, all documents are classified", async () => {
    await using env = await testEnvironment({ app });
    await env.everyFaultPoint(async (each) => {
      const handle = await each.client.start(s0.classifyDocs, { docs: docs.slice(0, 3) });
      expect(await handle.result()).toEqual(labels.slice(0, 3));
    });
  });

  test("two models side by side, and plain activities beside them", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s0.multiModelPipeline, "hello!");
    expect(await handle.result()).toBe("label=spam, embedding_dim=3");
  });

  test("an orchestration that fails leaves no session open", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s0.failsWithOpenSession);
    await expect(handle.result()).rejects.toThrow("the orchestration failed");
    await env.skip("1s");
    expect(s0.journal).toEqual(["load left-open", "unload left-open"]);
  });

  test("an init that fails is tried again, then told with its cause", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s0.classifyDocs, { docs, modelPath: "missing" });
    await expect(handle.result()).rejects.toMatchObject({ code: "session_init_failed" });
    await expect(handle.result()).rejects.toThrow("no weights at missing");
  });
});

describe("S1, sessions that move and are managed by the application", () => {
  const rebuilds = () => s1.journal.filter((line) => line.startsWith("rebuild"));

  test("matrix 4: activities that are cold together cause one rebuild", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s1.inferBoth, { a: "a", b: "b" });
    expect(await handle.result()).toEqual(["m1: a", "m1: b"]);
    expect(rebuilds()).toHaveLength(1);
  });

  test("matrix 1: survives continue-as-new and stays warm", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s1.overExecutions, { left: 3 });
    expect(await handle.result()).toEqual(["m1: e1", "m1: e2", "m1: e3", "m1: e4"]);
    expect(rebuilds()).toHaveLength(1);
  });

  test("matrix 2: ending it cancels what runs, and what that says later is ignored", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s1.endsWhileRunning);
    expect(await handle.result()).toBe("CancelledError");
  });

  test("matrix 3 and 7: worker death, attachment elsewhere, rebuild and retry, between timers and events", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s1.mixed);
    await env.skip("10m");
    await env.killWorker();
    await env.killWorker();
    await env.skip("1h");
    await handle.signal("word", "an event");
    expect(await handle.result()).toEqual([
      "m1: start",
      "m1: after the timer",
      "m1: an event",
      "m1: beside it",
    ]);
    expect(rebuilds().length).toBeGreaterThanOrEqual(2);
  });

  test("edge case 2: a worker that dies during the rebuild", async () => {
    await using env = await testEnvironment({ app });
    await env.kill("rebuilding-s1", { at: "after-call", count: 3 }); // after the two that missed the state
    const handle = await env.client.start(s1.inferBoth, { a: "a", b: "b" }, { id: "rebuilding" });
    expect(await handle.result()).toEqual(["m1: a", "m1: b"]);
    expect(rebuilds().length).toBeGreaterThanOrEqual(2);
  });

  test("matrix 5: a rebuild that misses the state is not rebuilt, and ends what waits for it", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s1.inferBoth, { a: "a", b: "b", model: "hopeless" });
    await expect(handle.result()).rejects.toMatchObject({ code: "session_lost" });
    expect(rebuilds().length).toBeLessThanOrEqual(2);
    expect(s1.journal.filter((line) => line.startsWith("infer"))).toEqual([]);
  });
});

describe("S2, sessions of a resource", () => {
  test("download, process and upload run on one worker", async () => {
    await using env = await testEnvironment({ app, workers: 3 });
    const handle = await env.client.start(s2.processOneFile, "a");
    expect(await handle.result()).toEqual({ attempt: 1, result: "a: processed" });
  });

  test("worker failure is told apart from an activity's error, and a new session begins from the start", async () => {
    await using env = await testEnvironment({ app, workers: 2 });
    const handle = await env.client.start(s2.processOneFile, "b");
    await env.skip("2s");
    await env.killWorker();
    await env.killWorker();
    expect(await handle.result()).toEqual({ attempt: 2, result: "b: processed" });
    expect(count(s2.journal, "download b")).toBe(2);
  });

  test("an activity's own error does not fail the session, and reaches the workflow as it is", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s2.processOneFile, "broken");
    await expect(handle.result()).rejects.toThrow("cannot be processed");
    expect(count(s2.journal, "download broken")).toBe(1);
  });

  test("a token leads the next run back to the same resource, among several workers", async () => {
    await using env = await testEnvironment({ app, workers: 4 });
    const handle = await env.client.start(s2.inTwoRuns, { filename: "c" });
    const { was, is, result } = await handle.result();
    expect(result).toBe("c: processed");
    expect(is).toBe(was);
    expect(count(s2.journal, "download c")).toBe(1);
  });
});

describe("S3, activity sessions", () => {
  test("all turns of a conversation meet the same memory", async () => {
    await using env = await testEnvironment({ app, workers: 3 });
    const handle = await env.client.start(s3.agent, ["a", "b", "c"]);
    expect(await handle.result()).toEqual({ lengths: [1, 2, 3], lost: 0 });
  });

  test("the worker dies: session_lost, a new session, and the conversation goes on where it was", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s3.agent, ["a", "b", "c"], { id: "conversation" });
    await env.skip("30s");
    await env.kill("conversation-s1");
    expect(await handle.result()).toEqual({ lengths: [1, 2, 3], lost: 1 });
    expect(s3.journal).toEqual(["hydrate 1"]);
  });

  test("an activity aborts its session", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s3.agent, ["a", "corrupt", "c"]);
    expect(await handle.result()).toMatchObject({ lengths: [1, 2, 3], lost: 1 });
  });

  test("create with an id and close are idempotent; nothing runs on a closed session", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s3.idempotent);
    expect(await handle.result()).toEqual({ same: true, length: 2, late: "session_unusable" });
  });
});

describe("S4, worker profiles, pools and sessions", () => {
  test("a pool of processes serves whoever comes", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s4.scrape, ["u1", "u2", "u3"]);
    expect((await handle.result()).map((line) => line.split(" ")[0])).toEqual(["u1", "u2", "u3"]);
  });

  test("a pool of threads predicts", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s4.classifyImages, ["1.jpg", "2.jpg"]);
    expect(await handle.result()).toEqual(["1.jpg: cat", "2.jpg: cat"]);
  });

  test("requests of one user share the state; each call renews its time to live", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s4.requests, { user: "user_123", pause: "90m" });
    expect(await handle.result()).toEqual([
      { y: 2, calls: 1, user: "user_123" },
      { y: 4, calls: 2, user: "user_123" },
    ]);
    expect(count(s4.journal, "initialize_model for user_123")).toBe(1);
  });

  test("after its time to live the state is made anew", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s4.requests, { user: "user_123", pause: "3h" });
    expect(await handle.result()).toMatchObject([{ calls: 1 }, { calls: 1 }]);
    expect(count(s4.journal, "initialize_model for user_123")).toBe(2);
  });

  test("the preferred worker is gone: another serves the user", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s4.requests, { user: "u", pause: "10m" });
    await env.skip("1m");
    await env.kill(app.userSession);
    expect(await handle.result()).toMatchObject([{ calls: 1 }, { calls: 1 }]);
  });

  test("a program and what was noted down outlive the worker that made them", async () => {
    await using env = await testEnvironment({ app });
    const handle = await env.client.start(s4.analysis, { project: "experiment_1", pause: "10m" });
    await env.skip("1m");
    await env.kill(app.analysisSession);
    const program = { status: "completed", result: "experiment_1 #1" };
    expect(await handle.result()).toEqual({
      made: program,
      found: program,
      forgotten: [true, null],
      metadata: { user_id: "user_123", project: "experiment_1", last_analysis: "experiment_1" },
    });
  });
});
