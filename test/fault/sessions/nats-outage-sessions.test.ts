/** S14, F18: NATS is away for longer than every TTL. That is not the death of every session. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { Streams } from "../../support/nats/streams.ts";
import { Journal } from "../../support/processes/journal.ts";
import { Stack, until } from "../../support/processes/stack.ts";

const app = fileURLToPath(new URL("../../apps/held.ts", import.meta.url));

test("holders that kept a clean state attach again with it; one that was in a call starts anew by its policy", async () => {
  using journal = new Journal();
  const env = { ...journal.env, HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "2000", WATCHER_GRACE: "3s" };
  await using stack = await Stack.start({ app, env });
  await using leases = await LeaseLog.start(stack);
  const streams = new Streams(stack);
  const idle = ["warm0", "warm1", "warm2"];
  for (const id of idle) {
    await stack.client.start("stepwise", { calls: 3, ttl: "3s", onLost: "fail" }, { id });
    await journal.until(`count ${id}`);
  }
  await stack.client.start("interrupted", { ms: 20_000, ttl: "3s", onLost: "reclaim" }, { id: "busy" });
  await journal.until("count busy", 2);
  await stack.client.start("interrupted", { ms: 20_000, ttl: "3s", onLost: "fail" }, { id: "strict" });
  await journal.until("count strict", 2);

  await stack.nats.kill();
  // The outage itself: longer than the TTL. No process can be asked meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 5000));
  await stack.nats.restart();

  for (const id of idle) {
    await until(
      `${id} is attached again`,
      async () => (await streams.kinds(id)).filter((kind) => kind === "session.activated").length === 2,
    );
    for (let step = 0; step < 3; step++) await stack.client.signal(id, "next");
    const { seen } = await stack.client.result<{ seen: unknown[] }>(id, { timeout: "30s" });
    expect(seen, "the state is still the one from before").toEqual([1, 2, 3]);
    const events = await streams.events(id);
    const activated = events.flatMap((event) => (event.kind === "session.activated" ? [event.warm] : []));
    expect(activated).toEqual([false, true]);
    expect(events.map((event) => event.kind)).not.toContain("session.lost");
    expect(journal.lines(`init ${id}`)).toHaveLength(1);
  }

  const strict = await stack.client.result<{ outcome: unknown }>("strict", { timeout: "30s" });
  expect(strict.outcome).toMatchObject({ code: "session_lost", reason: "expired" });
  const busy = await stack.client.result<{ outcome: unknown; next: unknown }>("busy", { timeout: "50s" });
  expect(busy.outcome, "a dirty state is never used again").toBe(1);
  expect(journal.lines("init busy")).toHaveLength(2);

  for (const id of [...idle, "busy", "strict"]) {
    await streams.checkEnded([id]);
  }
  expect(leases.violations()).toEqual([]);
  await streams.untilQuiet();
}, 120_000);
