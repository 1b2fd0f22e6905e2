/** F7, F12: the watchers die, are paused and come back; a loss is reported once, however late. */
import { expect, it } from "vitest";
import { installation } from "../support/processes/installation.ts";
import { until } from "../support/processes/stack.ts";

const world = installation({
  app: "held",
  workers: 0,
  watchers: 0,
  env: { WATCHER_LEASE_TTL: "2s" },
  leases: true,
});
const { journal, start, result } = world;

/** Several instances with a call under way on one worker, which is killed. */
async function loseAll(prefix: string): Promise<string[]> {
  const ids = Array.from({ length: 5 }, (_, i) => `${prefix}${i}`);
  const worker = await world.stack.run("worker");
  for (const id of ids) await start("interrupted", { ms: 60_000 }, id);
  for (const id of ids) await journal.until(`count ${id}`, 2);
  worker.kill("SIGKILL");
  return ids;
}

async function checkLost(ids: string[]): Promise<void> {
  for (const id of ids) {
    const { outcome } = await result<{ outcome: unknown }>(id, "30s");
    expect(outcome).toMatchObject({ code: "session_lost", reason: "expired" });
    const kinds = await world.streams.kinds(id);
    expect(kinds.filter((kind) => kind === "session.lost")).toHaveLength(1);
  }
  // Once more when all are over: nothing comes after an end.
  await world.streams.checkEnded(ids);
}

const toldBy = (log: string): number => log.split('"kind":"session.lost"').length - 1;

it("both down during an expiry, then one returns: each loss is told once", async () => {
  const before = await Promise.all([world.stack.run("watcher"), world.stack.run("watcher")]);
  const ids = await (async () => {
    const losing = loseAll("both");
    for (const watcher of before) watcher.kill("SIGKILL");
    return losing;
  })();
  await until("every lease has expired", () => {
    const own = world.leases.holdings.filter(({ sessionId }) => sessionId.startsWith("both"));
    return own.length === ids.length && own.every(({ end }) => end?.kind === "expired");
  });
  for (const id of ids) expect(await world.streams.kinds(id)).not.toContain("session.lost");
  const returned = await world.stack.run("watcher");
  await checkLost(ids);
  expect(toldBy(returned.log())).toBe(ids.length);
  await returned.stop();
});

it("the acting one sleeps, the other takes over, the first wakes: told once", async () => {
  const first = await world.stack.run("watcher");
  await until("the first acts", () => first.log().includes('"kind":"watcher.acting"'));
  const second = await world.stack.run("watcher");
  first.pause();
  const ids = await loseAll("sleep");
  await checkLost(ids);
  expect(second.log()).toContain('"kind":"watcher.acting"');
  first.resume();
  await until("the first knows", () => /"kind":"lease.lost".*"key":"service.watcher"/.test(first.log()));
  // The next loss is reported by the acting watcher; earlier losses in the paused one's memory do no harm.
  await checkLost(await loseAll("after"));
  await checkLost(ids);
  expect(toldBy(first.log()) + toldBy(second.log())).toBe(2 * ids.length);
});

it("the acting one is killed while the other waits: it takes over", async () => {
  const watchers = world.stack.of("watcher").filter((watcher) => !watcher.gone);
  expect(watchers).toHaveLength(2);
  const acting = watchers.find((watcher) => {
    const log = watcher.log();
    return log.lastIndexOf("watcher.acting") > log.lastIndexOf("watcher.standby");
  });
  acting?.kill("SIGKILL");
  await checkLost(await loseAll("killed"));
});
