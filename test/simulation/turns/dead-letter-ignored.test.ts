/**
 * A message with no receiver becomes a dead letter before it is acknowledged, also if that takes several
 * tries.
 */
import { expect, test } from "vitest";
import {
  DeadLetter,
  type ScheduleCommand,
  ScheduleSpec,
  scheduleInstance,
  scheduleSignal,
} from "../../../schemas/index.ts";
import { encode, type PublishOutcome } from "../../../shared/bus/index.ts";
import { collectApp, defineOrchestration } from "../../../shared/definitions/index.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { type Member, World } from "../../../shared/testing/world/world.ts";

const app = collectApp({ quick: defineOrchestration("quick", { run: async () => "done" }) });

/** That many of the next dead letters are not stored, and the publishes get no answer. */
function loseBurials({ bus }: Member, count: number): void {
  const publish = bus.publish.bind(bus);
  let left = count;
  bus.publish = async (subject, body, options): Promise<PublishOutcome> =>
    subject.startsWith("dead.") && left-- > 0 ? { kind: "unknown" } : publish(subject, body, options);
}

async function graves(world: World): Promise<string[]> {
  const letters = await world.run(world.outside.read(world.names.deadStream, "dead.>"));
  return (letters ?? []).map(({ body }) => {
    const { what, id, reason } = DeadLetter.parse(JSON.parse(new TextDecoder().decode(body)));
    return `${what} ${id} ${reason.code}`;
  });
}

test.each([0, 1, 3])("a signal after the end, burials unanswered: %i", async (unanswered) => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  loseBurials(await world.orchestrator(), unanswered);
  const handle = await world.start("quick", null, "over");
  expect(await world.run(handle.result())).toBe("done");
  await world.signal("over", "go", "too late");
  await world.clock.advance(10_000);
  expect(await graves(world)).toEqual(["signal over instance_ended"]);
  expect(world.count("signal.unheard")).toBe(1);
  const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
  expect(inbox?.messages, "and it is acknowledged").toBe(0);
});

test("a schedule created again as it was, just after its last run, leaves no dead letter; changed, it does", async () => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  await world.orchestrator();
  const { schedules } = world.client;
  const spec = { orchestration: "quick", every: "1s", limit: 1 } as const;
  await world.run(schedules.create("s", spec));
  const keeper = scheduleInstance("s");
  await world.run(world.client.result(keeper), 30_000);
  // As by a client that has read the register before the last run.
  const tell = (command: ScheduleCommand) =>
    world.run(world.outside.publish(world.names.signal(keeper, scheduleSignal), encode(command), {}));
  const given = ScheduleSpec.parse(spec);
  await tell({ kind: "update", spec: given });
  await tell({ kind: "delete" });
  await tell({ kind: "ended", instanceId: "s-1", status: "completed" });
  await world.clock.advance(10_000);
  expect(await graves(world)).toEqual([]);
  await tell({ kind: "update", spec: { ...given, limit: 2 } });
  await tell({ kind: "trigger", token: "again" });
  await world.clock.advance(10_000);
  const unheard = `signal ${keeper} instance_ended`;
  expect(await graves(world)).toEqual([unheard, unheard]);
  const inbox = await world.run(world.outside.streamInfo(world.names.inboxStream));
  expect(inbox?.messages, "and all are acknowledged").toBe(0);
});

test.each([0, 1, 3])("a cancel of what never was, burials unanswered: %i", async (unanswered) => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  loseBurials(await world.orchestrator(), unanswered);
  await world.run(world.outside.publish(world.names.verb("nobody", "cancel"), new Uint8Array()));
  await world.clock.advance(10_000);
  expect(await graves(world)).toEqual(["cancel nobody instance_not_found"]);
});

test("an owner that dies before it is buried leaves it to the next", async () => {
  const world = new World({ seed: 1, app, faults: noFaults });
  await world.prepare();
  const first = await world.orchestrator();
  loseBurials(first, Number.POSITIVE_INFINITY);
  const handle = await world.start("quick", null, "over");
  expect(await world.run(handle.result())).toBe("done");
  await world.signal("over", "go", "too late");
  await world.clock.advance(3_000);
  first.kill();
  await world.orchestrator();
  await world.clock.advance(10_000);
  expect(await graves(world)).toEqual(["signal over instance_ended"]);
});
