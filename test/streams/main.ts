/**
 * `npm run test:streams`: one reader follows a stream over HTTP while its line, the gateway, the worker and the
 * orchestrator go away at random, a hundred times in all. Nothing is missing and nothing comes twice. `SEED=<n>` repeats
 * a run, `BREAKS=<n>` makes it shorter.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { pickFreePort } from "../../shared/embedded-nats/free-port.ts";
import type { StreamItem } from "../../shared/sdk/index.ts";
import { Stack, until } from "../support/processes/stack.ts";
import { tokensPerStep } from "./app.ts";

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const breaks = Number(process.env.BREAKS ?? 100);
process.stdout.write(`seed ${seed}, ${breaks} breaks\n`);
let state = seed;
const random = (below: number) => {
  state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
  return Math.floor((state / 2 ** 31) * below);
};

const id = "speech-1";
const port = await pickFreePort();
await using stack = await Stack.start({
  app: fileURLToPath(new URL("app.ts", import.meta.url)),
  workers: 2,
  env: { HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000", WORKER_ACK_WAIT: "3s" },
});
const startGateway = () => stack.run("gateway", { GATEWAY_PORT: String(port) });
await startGateway();
await stack.client.start("speech", undefined, { id });

const items: StreamItem[] = [];
let ended = false;

/** One line: reads until it has got so many, or until it breaks. */
async function readLine(most: number): Promise<void> {
  const hangUp = new AbortController();
  const last = items.at(-1)?.offset;
  try {
    const response = await fetch(`http://127.0.0.1:${port}/api/instances/${id}/stream`, {
      headers: {
        accept: "text/event-stream",
        ...(last === undefined ? {} : { "last-event-id": String(last) }),
      },
      signal: hangUp.signal,
    });
    const decoder = new TextDecoder();
    let text = "";
    let got = 0;
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        if (frame.startsWith("event: end")) ended = true;
        const data = /^id: \d+\nevent: chunk\ndata: (.*)$/.exec(frame)?.[1];
        if (data === undefined) continue;
        items.push(JSON.parse(data) as StreamItem);
        if (++got >= most) return;
      }
      if (ended) return;
    }
  } catch {
    // The gateway is away: it is asked again, behind what was read.
    await new Promise((resolve) => setTimeout(resolve, 50));
  } finally {
    hangUp.abort();
  }
}

const kinds = { line: 0, gateway: 0, worker: 0, orchestrator: 0 };
async function breakSomething(): Promise<void> {
  const dice = random(20);
  if (dice >= 3) {
    kinds.line++;
    return readLine(1 + random(25));
  }
  const kind = (["gateway", "worker", "orchestrator"] as const)[dice] ?? "worker";
  kinds[kind]++;
  const victims = stack.of(kind).filter(({ gone }) => !gone);
  const victim = victims[random(victims.length)];
  victim?.kill("SIGKILL");
  await victim?.exited;
  // Read on meanwhile: restarted processes write to connected readers.
  await Promise.all([kind === "gateway" ? startGateway() : stack.run(kind), readLine(1 + random(25))]);
}

for (let n = 1; n <= breaks; n++) await breakSomething();
await stack.client.signal(id, "stop");
while (!ended) await readLine(Number.POSITIVE_INFINITY);
const steps = Number(await stack.client.result(id, { timeout: "60s" }));

const stored: number[] = [];
for await (const { offset } of stack.client.stream(id, { follow: false })) stored.push(offset);
assert.deepEqual(
  items.map(({ offset }) => offset),
  stored,
  "the reader has every chunk that is stored, once and in order",
);
/** One text for each step, of the latest run alone: the text a reader would see. */
const texts = new Map<number, StreamItem[]>();
for (const item of items) {
  const before = texts.get(item.of)?.[0];
  const order = before ? item.attempt - before.attempt || item.run - before.run : 0;
  if (order < 0) continue;
  texts.set(item.of, order > 0 ? [item] : [...(texts.get(item.of) ?? []), item]);
}
assert.equal(texts.size, steps, "every step has spoken");
for (const [of, text] of texts) {
  const wanted = Array.from({ length: tokensPerStep }, (_, token) => token);
  assert.deepEqual(
    text.map(({ chunk }) => chunk),
    wanted,
    `step ${of} is whole`,
  );
}
await until("the instance is over", async () => (await stack.client.status(id)).status === "completed");
const repeated = new Set(items.map(({ of, attempt, run }) => `${of}.${attempt}.${run}`)).size - texts.size;
process.stdout.write(
  `good: ${items.length} chunks of ${steps} steps, ${repeated} runs repeated; broken: ${JSON.stringify(kinds)}\n`,
);
