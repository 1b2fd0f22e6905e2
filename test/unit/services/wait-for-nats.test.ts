import { expect, it } from "vitest";
import { waitForNats } from "../../../services/wait-for-nats.ts";
import type { Bus } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { type Happening, systemRuntime } from "../../../shared/runtime/index.ts";

const fault = (kind: "config" | "transient", code: string) => new Fault(kind, { code, message: code });
const connected = { connected: () => true } as unknown as Bus;

function trying(...failures: Fault[]) {
  return tryingFor(Number.POSITIVE_INFINITY, ...failures);
}

function tryingFor(waitMs: number, ...failures: Fault[]) {
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
    result: waitForNats(open, { runtime, signal: stop.signal, waitMs }),
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
  one.stop.abort();
  expect(await one.result).toBeUndefined();
  expect(one.told.length, "tries that were told of").toBeLessThan(2);
});

it("defect 20: gives up with what was wrong when it has waited as long as it may, having said how long that is", async () => {
  const one = tryingFor(600, ...Array.from({ length: 100 }, () => fault("config", "nats_unreachable")));
  await expect(one.result).rejects.toMatchObject({ code: "nats_unreachable" });
  expect(one.tries()).toBe(2);
  expect(one.told).toMatchObject([{ message: expect.stringContaining("at most 0.6 s (NATS_WAIT)") }]);
});
