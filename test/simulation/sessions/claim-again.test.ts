/** A claim that comes again, as from an owner that publishes its last commit's effects a second time (T3). */
import { expect, test } from "vitest";
import {
  call,
  collectApp,
  defineOrchestration,
  defineSession,
  defineSignal,
} from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { LeaseLog } from "../../../shared/verify/index.ts";
import { tapWorld } from "../../support/nats/tapped-bus.ts";

const scarce = defineSession("scarce", {
  maxTotal: 1,
  init: () => ({}),
  calls: { ping: call({ run: () => "pong" }) },
});
const end = defineSignal("end");
const uses = defineOrchestration("uses", {
  async run(ctx, keep: boolean) {
    await using session = await ctx.openSession(scarce, { creationTimeout: "2h", leaseTtl: "3s" });
    if (keep) await ctx.waitForSignal(end);
    return await session.ping(undefined);
  },
});

test.each(["when its claim comes again", "when the claim of an attachment before comes again"])(
  "the seat of a session that is held stays taken %s (QUOTA-1)",
  async (what) => {
    const world = new World({ seed: 5, app: collectApp({ scarce, uses }), faults: noFaults });
    await world.prepare();
    const offered: Uint8Array[] = [];
    tapWorld(world, (said) => {
      if (said.subject.startsWith("offers.") && !said.answer) offered.push(said.body);
      return said;
    });
    await world.orchestrator();
    await world.worker();
    await using log = await world.run(LeaseLog.start({ bus: world.outside, names: world.names }));
    const attached = async (times: number) => {
      for (let i = 0; i < 100 && world.count("session.attached") < times; i++) await world.clock.advance(100);
      expect(world.count("session.attached")).toBe(times);
    };
    const keeper = await world.start("uses", true, "keeper");
    await attached(1);
    const [claim] = offered;
    if (!claim) throw new Error("no claim was offered");
    const isReattached = what !== "when its claim comes again";
    if (isReattached) {
      // S14: its holder attaches again by itself.
      world.broker.stop();
      await world.clock.advance(5_000);
      world.broker.start();
      await attached(2);
    }
    const raced = () =>
      world.happenings.filter((one) => one.kind === "claim.seen" && one.verdict !== "taken").length;
    const before = raced();
    await world.run(world.outside.publish(world.names.claim("scarce", "keeper-s1"), claim));
    for (let i = 0; i < 100 && raced() === before; i++) await world.clock.advance(100);
    expect(raced(), "the copy was seen").toBeGreaterThan(before);

    const other = await world.start("uses", false, "other");
    await world.clock.advance(10_000);
    expect(world.count("session.attached"), "the only seat is taken").toBe(isReattached ? 2 : 1);
    await world.run(world.client.signal("keeper", end));
    expect(await world.run(keeper.result(), 60_000)).toBe("pong");
    expect(await world.run(other.result(), 60_000)).toBe("pong");
    expect(log.mostAtOnce()).toBe(1);
  },
);
