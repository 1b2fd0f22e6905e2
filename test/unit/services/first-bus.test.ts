import { expect, it } from "vitest";
import { firstBus } from "../../../services/first-bus.ts";
import type { Bus } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { type Happening, systemRuntime } from "../../../shared/runtime/index.ts";

const fault = (kind: "config" | "transient", code: string) => new Fault(kind, { code, message: code });
const connected = { connected: () => true } as unknown as Bus;

function trying(...failures: Fault[]) {
  const told: Happening[] = [];
  const stop = new AbortController();
  let tries = 0;
  const open = async () => {
    tries++;
    const failure = failures.shift();
    if (failure) throw failure;
    return connected;
  };
  const runtime = systemRuntime((happening) => told.push(happening));
  return {
    stop,
    told,
    tries: () => tries,
    result: firstBus(open, runtime, stop.signal),
  };
}

it("tries until there is a server, and until its streams have a leader, and says each once", async () => {
  const away = () => fault("config", "nats_unreachable");
  const one = trying(away(), away(), fault("transient", "no_leader"));
  expect(await one.result).toBe(connected);
  expect(one.tries()).toBe(4);
  expect(one.told.map((happening) => "code" in happening && happening.code)).toEqual([
    "nats_unreachable",
    "no_leader",
  ]);
});

it("does not wait for what only a person can put right", async () => {
  const one = trying(fault("config", "nats_unauthorized"));
  await expect(one.result).rejects.toMatchObject({ code: "nats_unauthorized" });
});

it("gives up when told to stop, at once", async () => {
  const one = trying(...Array.from({ length: 100 }, () => fault("config", "nats_unreachable")));
  const began = performance.now();
  one.stop.abort();
  expect(await one.result).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(400);
});
