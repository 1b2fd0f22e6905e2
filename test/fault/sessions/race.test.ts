import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { Streams } from "../../support/nats/streams.ts";
import { Crews } from "../../support/processes/crew.ts";
import { Stack, until } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../apps/held.ts", import.meta.url));

const crews = 5;
const workersEach = 10;
const cap = 14;
const instances = 50;
const sessionsEach = 10;

test("I6: fifty workers race for five hundred sessions, some of them die: one owner each, epochs grow", async () => {
  const env = {
    WORKER_MAX_SESSIONS: String(cap),
    HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "10000",
    LOG_LEVEL: "error",
  };
  await using stack = await Stack.start({ app, workers: 0, env });
  await using leases = await LeaseLog.start(stack);
  const streams = new Streams(stack);
  const only = { WORKER_ACTIVITY_SLOTS: "0", WORKER_SESSION_TYPES: "counter" };
  await using crew = new Crews({
    ...stack.login("worker"),
    ...env,
    ...only,
    NATS_URL: stack.nats.url,
    HOLDFAST_APP: app,
  });
  const doomed = await crew.start(workersEach);
  for (let i = 1; i < crews; i++) await crew.start(workersEach);
  // All of them wait when the sessions come, and all at once.
  const ids = Array.from({ length: instances }, (_, i) => `crowd${i}`);
  await Promise.all(ids.map((id) => stack.client.start("crowd", { n: sessionsEach, ttl: "15s" }, { id })));
  for (const id of ids) {
    await until(
      `${id} has all its sessions`,
      async () => (await stack.client.status(id).catch(() => undefined))?.customStatus === "open",
      120_000,
    );
  }
  const holders = leases.holdings.filter((holding) => holding.end === undefined).map(({ holder }) => holder);
  expect(holders).toHaveLength(instances * sessionsEach);
  const perHolder = new Map<string, number>();
  for (const holder of holders) perHolder.set(holder, (perHolder.get(holder) ?? 0) + 1);
  expect(Math.max(...perHolder.values())).toBeLessThanOrEqual(cap);
  console.info(
    `${holders.length} sessions on ${perHolder.size} workers, at most ${Math.max(...perHolder.values())}`,
  );

  doomed.kill();
  for (const id of ids) await stack.client.signal(id, "again");
  const seen = new Set<number>();
  for (const id of ids) {
    const sessions = await stack.client.result<{ id: string; epoch: number; workerId: string }[]>(id, {
      timeout: "120s",
    });
    for (const session of sessions) {
      expect(leases.of(session.id).at(-1)).toMatchObject({
        fromSeq: session.epoch,
        holder: session.workerId,
      });
      seen.add(session.epoch);
    }
  }
  expect(seen.size, "no epoch twice").toBe(instances * sessionsEach);
  expect(leases.violations()).toEqual([]);
  await streams.checkEnded(ids);
  const expired = leases.holdings.filter(({ end }) => end?.kind === "expired").length;
  expect(expired, "those of the dead").toBeGreaterThan(0);
  await streams.untilQuiet(60_000);
}, 400_000);
