/**
 * A running installation in which every page has something to show: losses, failures, parked and waiting
 * orchestrations, schedules, limits, pools, sessions by key, streams and dead letters. The engine did all of
 * it; no data is made up.
 */
import { fileURLToPath } from "node:url";
import { Stack, until } from "../../../../test/support/processes/stack.ts";
import { conversation, translator } from "./busy-app.ts";
import type { Derived } from "./pictures.ts";

const app = fileURLToPath(new URL("./app.ts", import.meta.url));

interface BusyWorld extends AsyncDisposable, Derived {
  readonly url: string;
}

export async function busyWorld(): Promise<BusyWorld> {
  const stack = await Stack.start({
    app,
    workers: 0,
    env: {
      WORKER_TAGS: "gpu",
      WORKER_RESOURCES: "vram=24",
      WORKER_REGISTER_EVERY: "500ms",
      WORKER_LEASE_TTL: "5s",
      WORKER_BUILD_ID: "2026-11-16",
    },
  });
  const { client } = stack;
  await stack.run("worker", { WORKER_NODE_ID: "gpu-1" });
  const gateway = await stack.run("gateway", { GATEWAY_PORT: "0" });
  const url = await until("the gateway's address", () => /"url":"(http[^"]+)"/.exec(gateway.log())?.[1]);

  await client.start("shipment", { item: "lamp" }, { id: "shipment-31" });
  const doneBy = async (id: string): Promise<number> =>
    (await client.history(id).catch(() => [])).filter(({ kind }) => kind === "activity.completed").length;
  await until("its first step", async () => (await doneBy("shipment-31")) > 0);
  const [before] = stack.of("orchestrator");
  await stack.run("orchestrator", { SECOND_DEPLOYMENT: "yes" });
  await before?.stop();
  await client.signal("shipment-31", "packed");

  await client.start("transcribe", undefined, { id: "transcribe-8" });
  await client.start("checkout", { item: "lamp", cents: 4900 }, { id: "checkout-77" });
  await client.start("essay", "anchors", { id: "essay-1" });
  await client.start("cart", undefined, { id: "cart-5" });
  await client.update("cart-5", "add", "a lamp");
  for (let i = 0; i < 5; i++)
    await client.start("import-file", 3_600_000, {
      id: `import-${i}`,
      flow: { key: "customer-7", concurrency: 2 },
    });
  for (let i = 0; i < 12; i++)
    await client.start("classify-docs", { docs: 1 + (i % 3) }, { id: `docs-${1000 + i * 37}` });
  await client.start("classify-docs", { docs: 2, approve: true }, { id: "docs-approval" });
  await client.schedules.create("nightly", {
    orchestration: "nightly-report",
    input: { pages: 3 },
    cron: "0 2 * * *",
    timeZone: "Europe/Berlin",
  });
  await client.schedules.create("every-quarter", {
    orchestration: "nightly-report",
    input: { pages: 1 },
    every: "15m",
  });
  await client.schedules.trigger("nightly");
  await client.schedules.pause("every-quarter", "the upstream is being moved");
  const chat = client.session(conversation, { key: "ada" });
  for (const text of ["hello", "are you there?", "good"]) await chat.say(text);
  await client.pool(translator).translate("hello");
  await stack.bus.publish("orchestrations.docs-77.signal.approve", Buffer.from('{"by": <b>ada</b>'));

  // A holder that dies in the middle, and another build that takes over.
  await client.start("classify-docs", { docs: 120 }, { id: "docs-2026-11" });
  const answered = async (atLeast: number) => (await doneBy("docs-2026-11")) >= atLeast;
  await until("some answers", () => answered(14));
  await stack.run("worker", { WORKER_NODE_ID: "gpu-2", WORKER_BUILD_ID: "2026-11-18" });
  const [session] = await client.sessions.list({ instanceId: "docs-2026-11" });
  const holder = (await client.workers.list()).find(({ workerId }) => workerId === session?.workerId);
  stack
    .of("worker")
    .find(({ pid }) => pid === holder?.pid)
    ?.kill("SIGKILL");
  await stack.run("worker", { WORKER_NODE_ID: "gpu-3" });
  await until("answers of the other", () => answered(40), 60_000);
  await chat.say("still there?");
  await until("the parked one", async () => (await client.status("shipment-31")).status === "parked", 60_000);
  const keyed = await until(
    "the key's session",
    async () => (await client.sessions.list({})).find(({ type }) => type === "conversation")?.sessionId,
  );
  // Its session stays open, however slow the machine is.
  const taker = (await client.sessions.describe("docs-approval-s1")).record.workerId ?? "";
  return {
    ...{ url, keyedSession: keyed, worker: taker },
    [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose](),
  };
}
