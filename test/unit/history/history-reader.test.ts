import { expect, test } from "vitest";
import { encode, headerNames, subjects } from "../../../shared/bus/index.ts";
import { HistoryReader } from "../../../shared/history/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

test("one first commit in the shared stream is a stray of an owner that yielded; a second one is another history", async () => {
  const clock = new SimulatedClock();
  const bus = new MemoryBroker({ clock }).connect();
  const names = subjects("");
  const own = { stream: names.ownHistoryStream("a"), subject: names.ownHistory("a") };
  const shared = { stream: names.sharedHistoryStream(0), subject: names.sharedHistory(0, "a") };
  const run = <T>(promise: Promise<T>) => clock.run(promise);
  for (const { stream, subject } of [own, shared])
    await run(bus.ensureStream({ name: stream, subjects: [subject], retention: "limits" }));
  const append = (subject: string, headers: Record<string, string> = {}) =>
    run(bus.publish(subject, encode({}), { headers: { [headerNames.commit]: "c", ...headers } }));
  const found = async () => await run(new HistoryReader(bus, names, 1).find("a"));

  await append(own.subject);
  await append(shared.subject);
  expect(await found()).toMatchObject({ ...own, alsoShared: false });
  await append(shared.subject, { [headerNames.executionStart]: "1" });
  expect(await found()).toMatchObject({ ...own, alsoShared: true });
});
