/**
 * A whole fleet under a seeded nemesis that kills, freezes and restarts whatever it likes, NATS included; afterwards a
 * checker reads the streams alone. `HOLDFAST_TEST_SEED=7 npx vitest run test/fault/nemesis.test.ts` repeats a run, as
 * far as real processes can be repeated.
 */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { seededRandom } from "../../shared/runtime/index.ts";
import { Journal } from "../support/journal.ts";
import { checkSessionEvents, LeaseLog } from "../support/lease-log.ts";
import { type ServiceName, type ServiceProcess, Stack, until } from "../support/stack.ts";
import { Streams } from "../support/streams.ts";

const app = fileURLToPath(new URL("../apps/held.ts", import.meta.url));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What is started, and what must come out of it whatever happens. */
const programs: { name: string; input: unknown; expected: unknown; signal?: string }[] = [
  { name: "steps", input: { n: 6, ms: 30 }, expected: 6 },
  {
    name: "mixed",
    input: { n: 4 },
    expected: { sum: 6, child: 4, word: "heard" },
    signal: "heard",
  },
  { name: "generations", input: { left: 5, total: 0 }, expected: { total: 5, execution: 5 } },
  { name: "sleepy", input: { ms: 300, times: 3 }, expected: expect.any(Number) },
  { name: "resilient", input: { n: 6, ms: 100 }, expected: 6 },
  { name: "resilient", input: { n: 4, ms: 300 }, expected: 4 },
];

test("I17: after every blow all that was acknowledged comes to its end, once", async () => {
  const seed = Number(process.env.HOLDFAST_TEST_SEED ?? Math.floor(Math.random() * 1e6));
  console.info(`seed ${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;

  using journal = new Journal();
  const env = {
    ...journal.env,
    HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000",
    WATCHER_LEASE_TTL: "2s",
    WATCHER_GRACE: "2s",
    WATCHER_RECONCILE_EVERY: "2s",
    WATCHER_DEAD_AFTER: "5s",
    WATCHER_SWEEP_EVERY: "2s",
    WORKER_ACK_WAIT: "2s",
  };
  await using stack = await Stack.start({ app, orchestrators: 2, workers: 3, watchers: 2, env });
  await using leases = await LeaseLog.start(stack);
  const streams = new Streams(stack);

  const acknowledged = new Map<string, (typeof programs)[number]>();
  let stopping = false;
  let number = 0;
  const client = async () => {
    while (!stopping) {
      const program = programs[number++ % programs.length] as (typeof programs)[number];
      const id = `${program.name}-${number}`;
      const started = await stack.client.start(program.name, program.input, { id }).catch(() => undefined); // unknown: it may have arrived, and then it is only not waited for
      if (!started) continue;
      acknowledged.set(id, program);
      if (program.signal) await tell(id, program.signal);
      await stack.client.result(id, { timeout: "5s", known: true }).catch(() => undefined);
    }
  };
  const tell = async (id: string, word: string) => {
    for (;;) {
      const told = await stack.client.signal(id, "word", word).then(
        () => true,
        () => false,
      );
      if (told) return;
      await pause(100);
    }
  };

  const alive = (service: ServiceName) => stack.of(service).filter((process) => !process.gone);
  const blows: string[] = [];
  const blow = async (): Promise<void> => {
    const service = pick(["orchestrator", "orchestrator", "worker", "worker", "watcher"] as const);
    const victim: ServiceProcess = pick(alive(service));
    const kind = pick(["kill", "kill", "freeze", "stop", "nats"] as const);
    blows.push(kind === "nats" ? "nats" : `${kind} ${service}`);
    switch (kind) {
      case "kill":
        victim.kill("SIGKILL");
        await victim.exited;
        await stack.run(service);
        return;
      case "stop":
        await victim.stop();
        await stack.run(service);
        return;
      case "freeze":
        victim.pause();
        await pause(2500 + random.next() * 2000);
        victim.resume();
        return;
      case "nats":
        await stack.nats.kill();
        await pause(random.next() * 3000);
        await stack.nats.restart();
        return;
    }
  };
  const clients = Promise.all(Array.from({ length: 12 }, client));
  for (let i = 0; i < 10; i++) {
    await pause(500 + random.next() * 1500);
    await blow();
  }
  stopping = true;
  await clients;
  console.info(`${acknowledged.size} instances through: ${blows.join(", ")}`);

  for (const [id, program] of acknowledged) {
    const result = await stack.client.result(id, { timeout: "90s", known: true });
    expect(result, id).toEqual(program.expected);
  }
  const ids = [...acknowledged.keys()];
  await streams.checkEnded(ids);
  for (const id of ids) checkSessionEvents(await streams.history(id));
  leases.checkOwners();
  await streams.untilQuiet(60_000);
  await until("every lease of a session has ended", () =>
    leases.holdings.every((holding) => holding.end !== undefined),
  );
  const letters = await streams.deadLetters();
  expect(letters.map(({ subject, reason }) => `${subject} ${reason.code}`)).toEqual([]);
}, 300_000);
