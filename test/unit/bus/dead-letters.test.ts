import { describe, expect, it } from "vitest";
import { DeadLetter } from "../../../schemas/index.ts";
import { bury, decode, defaultTopology, ensureTopology, subjects } from "../../../shared/bus/index.ts";
import { type Happening, systemClock, systemRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker, noFaults } from "../../../shared/testing/memory/index.ts";

const names = subjects();
const burial = { what: "inbox", id: "i1", code: "invalid_message", message: "events.0: wrong" };

async function rig() {
  const bus = new MemoryBroker().connect();
  await ensureTopology(bus, names, defaultTopology);
  const heard: Happening[] = [];
  const announce = (happening: Happening) => void heard.push(happening);
  const runtime = { clock: systemClock, random: systemRandom, announce };
  return { bus, heard, deps: { bus, names, runtime } };
}

const message = (body: Uint8Array, headers: Record<string, string> = {}) => ({
  subject: "inbox.3.i1.start.x",
  seq: 42,
  at: 1,
  headers,
  body,
});

describe("dead letters", () => {
  it("keeps the message with its reason, once", async () => {
    const { bus, heard, deps } = await rig();
    const original = message(Uint8Array.of(0, 255, 1), { "X-A": "b" });
    expect(await bury(deps, original, burial)).toBe(true);
    expect(await bury(deps, original, burial)).toBe(true);
    const kept = await bus.read(names.deadStream, names.dead("inbox", "i1"));
    expect(kept).toHaveLength(1);
    const letter = decode(DeadLetter, kept?.[0]?.body ?? new Uint8Array(0));
    expect(letter).toMatchObject({
      kind: "ok",
      value: {
        subject: "orchestrations.i1.start.x",
        reason: { code: "invalid_message", message: "events.0: wrong" },
        headers: { "X-A": "b" },
        body: "AP8B",
      },
    });
    expect(heard).toEqual([{ kind: "dead.lettered", ...burial, subject: "orchestrations.i1.start.x" }]);
  });

  it("cuts what would not fit, and any id finds a place", async () => {
    const { bus, deps } = await rig();
    const huge = message(new Uint8Array(bus.maxPayloadBytes).fill(65), {
      big: "x".repeat(20_000),
      "X-A": "b",
    });
    const odd = { ...burial, id: `${"*.>".repeat(500)}`, message: "m".repeat(50_000) };
    expect(await bury(deps, huge, odd)).toBe(true);
    const kept = await bus.read(names.deadStream, names.dead("inbox", "unknown"));
    const letter = decode(DeadLetter, kept?.[0]?.body ?? new Uint8Array(0));
    if (letter.kind !== "ok") throw new Error(letter.message);
    expect(letter.value.reason.message).toMatch(/the first \d+ of 1048576 bytes are kept/);
  });

  it("is stored though somebody has used up its message id (SEC-2)", async () => {
    const { bus, deps } = await rig();
    await bus.publish(names.dead("activity", "forged"), Uint8Array.of(1), { msgId: "dead-inbox-42" });
    const original = message(Uint8Array.of(1));
    expect(await bury(deps, original, burial)).toBe(true);
    expect(await bus.read(names.deadStream, names.dead("inbox", "i1"))).toHaveLength(1);
  });

  it("says so when it is not safely stored", async () => {
    const clock = new SimulatedClock();
    const broker = new MemoryBroker({ clock });
    const bus = broker.connect();
    await clock.run(ensureTopology(bus, names, defaultTopology));
    broker.fate.faults = { ...noFaults, publishLost: 1 };
    const runtime = { clock, random: systemRandom, announce: () => undefined };
    const original = message(new Uint8Array(1));
    expect(await clock.run(bury({ bus, names, runtime }, original, burial))).toBe(false);
  });
});
