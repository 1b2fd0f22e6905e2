/** S14: a holder that attached again by itself, and whose word of it never reached the instance. */
import { expect, test } from "vitest";
import { SessionReport } from "../../../schemas/index.ts";
import { decode } from "../../../shared/bus/index.ts";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";

const counter = defineSession("counter", {
  init: () => ({ n: 0 }),
  calls: { add: call({ run: (state: { n: number }, by: number) => (state.n += by) }) },
});
const app = collectApp({
  counter,
  adds: defineOrchestration("adds", {
    run: async (ctx) => {
      await using mine = await ctx.openSession(counter, { onLost: "reclaim", creationTimeout: "10m" });
      await ctx.waitForSignal("go");
      return await mine.add(1);
    },
  }),
});

/**
 * A holder attached again by itself; its instance never gets that report, and of other reports only those let
 * through.
 */
async function attachedAgain(mayPass: (kind: string) => boolean): Promise<void> {
  const world = new World({ seed: 1, app, faults: { ...noFaults, latencyMs: [1, 2] } });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  const holder = await world.worker();
  const handle = await world.start("adds", null, "a");
  await world.clock.runUntil(() => world.count("session.attached") === 1);
  const { publish } = holder.bus;
  let isCut = true;
  holder.bus.publish = async (subject, body, options) => {
    if (isCut && subject.startsWith("$KV.leases.")) return { kind: "unknown" };
    const report = subject === world.names.verb("a", "session") ? decode(SessionReport, body) : undefined;
    if (report?.kind === "ok" && report.value.attachment === 2 && !mayPass(report.value.report.kind))
      return { kind: "unknown" };
    return publish.call(holder.bus, subject, body, options);
  };
  await world.clock.runUntil(() => world.count("lease.lost") > 0);
  isCut = false;
  await world.clock.runUntil(() => world.count("session.attached") === 2);
  await world.clock.runUntil(() => world.count("session.detached") === 2);
  await world.signal("a", "go", 1);
  expect(await world.run(handle.result(), 60_000)).toBe(1);
  checkHistory((await world.history("a")) ?? []);
}

test("REATTACH-3: it says that it gives the session up, so that nobody waits for an attachment that is spent", async () => {
  await attachedAgain((kind) => kind !== "activated");
});

test("where that is not heard either, the watcher finds the key given back", async () => {
  await attachedAgain(() => false);
});
