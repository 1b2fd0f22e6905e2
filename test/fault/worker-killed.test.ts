import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { bucketStream, bucketSubject } from "../../shared/bus/index.ts";
import { Streams } from "../support/nats/streams.ts";
import { Journal } from "../support/processes/journal.ts";
import { Stack, until } from "../support/processes/stack.ts";

const app = fileURLToPath(new URL("../apps/durable.ts", import.meta.url));

/** What a run has beaten is of use to the next one as soon as the server has it, which is later on a busy machine. */
const beatIsStored = ({ bus, names }: Stack, instanceId: string) =>
  until("the beat is stored", async () => {
    const bucket = names.bucket("heartbeats");
    return (await bus.last(bucketStream(bucket), bucketSubject(bucket, `${instanceId}.1.2`))) !== undefined;
  });

test("F2: a worker dies during an activity; another one runs it again and knows the last heartbeat", async () => {
  using journal = new Journal();
  const env = { ...journal.env, WORKER_ACK_WAIT: "1s" };
  await using stack = await Stack.start({ app, watchers: 0, env });
  const handle = await stack.client.start("survivor", null);
  const [beating = ""] = await journal.until("beating");
  await beatIsStored(stack, handle.instanceId);
  const [first] = stack.of("worker");
  first?.kill("SIGKILL");
  const second = await stack.run("worker");
  const result = (await handle.result({ timeout: "20s" })) as {
    before: { workerId: string };
    workerId: string;
  };
  expect(`beating ${result.before.workerId}`).toBe(beating);
  expect(result.workerId).not.toBe(result.before.workerId);
  expect(second.pid).not.toBe(first?.pid);
  const streams = new Streams(stack);
  await streams.checkEnded([handle.instanceId]);
  // A redelivery is no attempt: no code failed.
  expect(await streams.kinds(handle.instanceId)).not.toContain("activity.attempt_failed");
  await streams.untilQuiet();
});

test("defect 15: a worker that fell silent is noticed by the heartbeat timeout, before its task comes again", async () => {
  using journal = new Journal();
  const env = { ...journal.env, WORKER_ACK_WAIT: "20s" };
  await using stack = await Stack.start({ app, env });
  const streams = new Streams(stack);
  const handle = await stack.client.start("survivor", "1s");
  const [beating = ""] = await journal.until("beating");
  await beatIsStored(stack, handle.instanceId);
  const [silent] = stack.of("worker");
  silent?.pause();
  // There is no other worker to which the task could come again.
  await vi.waitFor(
    async () => expect(await streams.kinds(handle.instanceId)).toContain("activity.attempt_failed"),
    { timeout: 30_000, interval: 100 },
  );
  silent?.kill("SIGKILL");
  await stack.run("worker");
  const result = (await handle.result({ timeout: "60s" })) as { before: { workerId: string } };
  expect(`beating ${result.before.workerId}`).toBe(beating);
  expect(journal.lines("lives").map((line) => line.split(" ").at(-1))).toEqual(["1", "2"]);
  await streams.checkEnded([handle.instanceId]);
});

test("F1, F2: workers die one after the other under load; each result is accepted once", async () => {
  using journal = new Journal();
  const env = { ...journal.env, WORKER_ACK_WAIT: "1s" };
  await using stack = await Stack.start({ app, workers: 2, watchers: 0, env });
  const ids = Array.from({ length: 60 }, (_, i) => `w${i}`);
  const handles = await Promise.all(ids.map((id) => stack.client.start("steps", { n: 5, ms: 200 }, { id })));
  for (const wanted of [60, 150]) {
    await journal.until("add", wanted);
    const [victim] = stack.of("worker").filter((worker) => !worker.gone);
    victim?.kill("SIGKILL");
    await victim?.exited;
    await stack.run("worker");
  }
  expect(await Promise.all(handles.map((handle) => handle.result({ timeout: "40s" })))).toEqual(
    ids.map(() => 5),
  );
  const streams = new Streams(stack);
  await streams.checkEnded(ids);
  await streams.untilQuiet();
  expect(journal.lines("add").length, "some ran twice, because their worker died").toBeGreaterThan(300);
});
