/** Whatever the code of a session does: a typed failure, the worker alive, nothing left behind. */

import { readdirSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Bucket } from "../../../shared/bus/index.ts";
import { systemRandom } from "../../../shared/runtime/index.ts";
import { blobKeys } from "../../support/nats/blob-keys.ts";
import { isAlive } from "../../support/processes/cli.ts";
import { installation } from "../../support/processes/installation.ts";
import { until } from "../../support/processes/stack.ts";

const places = ["inline", "thread", "process"] as const;

let worker: number;
let threadsAtFirst: number;
const world = installation({
  app: "bad-handlers",
  prepare: (stack) => {
    worker = stack.of("worker")[0]?.pid ?? 0;
    threadsAtFirst = threadsOf(worker);
  },
});

/** Processes of the worker's own that hold sessions; a compiler it keeps for TypeScript is none. */
const hostsOf = (parent: number): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const parentOfPid = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
        return (
          parentOfPid === parent && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("process-main")
        );
      } catch {
        return false; // it has ended meanwhile
      }
    })
    .map(Number);

/** Of the operating system; the runtime's own pools come with the first use of each. */
const threadsOf = (pid: number): number => readdirSync(`/proc/${pid}/task`).length;

/** Nothing of a session that is over stays anywhere: no lease, no right, no host, no blob, no message. */
afterEach(async () => {
  expect(world.stack.of("worker").map(({ gone }) => gone)).toEqual([false]);
  const leases = new Bucket(world.stack.bus, world.stack.names.bucket("leases"), { random: systemRandom });
  await until("no session has a lease", async () => {
    for await (const _lease of leases.entries("session.>")) return false;
    return true;
  });
  await until("nothing is used in the worker", async () => {
    const [info] = await world.client.workers.list();
    const { calls, sessions } = info?.slots ?? { calls: { used: 1 }, sessions: { used: 1 } };
    return calls.used === 0 && sessions.used === 0 && info?.sessions.length === 0;
  });
  await until("every host has ended", () => hostsOf(worker).length === 0);
  expect(await blobKeys(world.stack.bus.blobs, "")).toEqual([]);
  await world.streams.untilQuiet();
  expect(await world.streams.deadLetters()).toEqual([]);
});

interface Seen {
  name?: string;
  code?: string;
  message?: string;
  value?: unknown;
}
const run = async <O>(name: string, input: unknown): Promise<O> => {
  const handle = await world.client.start(name, input);
  return (await handle.result({ timeout: "50s" })) as O;
};
const misbehave = (where: string, how: string) =>
  run<{ got: Seen; after: Seen; pid: number }>("misbehave", { where, how });

const refusedInside = [
  ["nestedFunction", "list[1].act is a function"],
  ["nestedSymbol", "[0].name is a symbol"],
  ["nestedBigint", "of.count is a bigint"],
] as const;
const written = { price: "1.5 EUR", at: "1970-01-01T00:00:00.000Z", list: [null, null] };

describe.each([...places, "plain"] as const)("an activity %s", (where) => {
  it("that returns what JSON has no words for fails, and says where; what only its class can write is written by it", async () => {
    const hows = [...refusedInside.map(([how]) => how), "classes"];
    expect(await run<Seen[]>("beside", { where, hows })).toMatchObject([
      ...refusedInside.map(([, message]) => ({
        ...{ code: "not_serialisable", message: expect.stringContaining(message) },
      })),
      { value: written },
    ]);
  });
});

const thrown = [
  ["text", { name: "ActivityError", code: "thrown_value", message: 'threw "a text"' }],
  ["nothing", { name: "ActivityError", code: "thrown_value", message: "threw undefined" }],
  ["cycles", { name: "ActivityError", code: "Error", message: "round and round" }],
  ["unreadable", { code: "thrown_value" }],
  ["rejecting", { code: "thrown_value", message: "threw null" }],
] as const;
const refused = ["function", "symbol", "bigint", "cycle", "throwingGetter"];
const bytes = { bytes: { type: "Buffer", data: [104, 105] } };

describe.each(places)("a handler %s", (where) => {
  it("that throws anything, or returns what JSON has no words for, fails its call alone, and says why", async () => {
    const expected: (readonly [how: string, got: object])[] = [
      ...thrown,
      ...refused.map(
        (how) => [how, { code: "not_serialisable", message: expect.stringContaining("cannot") }] as const,
      ),
      ...refusedInside.map(
        ([how, at]) => [how, { code: "not_serialisable", message: expect.stringContaining(at) }] as const,
      ),
      ["classes", { value: written }],
      ["bytes", { value: bytes }],
    ];
    const hows = expected.map(([how]) => how);
    const answers = await run<{ got: Seen; after: Seen }[]>("misbehave-often", { where, hows });
    // The state counts its good calls: it is the one that `init` made until the end.
    expect(hows.map((how, i) => [how, answers[i]])).toEqual(
      expected.map(([how, got], i) => [how, { got: expect.objectContaining(got), after: { value: i + 1 } }]),
    );
  });

  it("that returns a bad item in a batch fails that item alone", async () => {
    expect(await run<Seen[]>("together", where)).toEqual([
      { value: 3 },
      expect.objectContaining({ code: "not_serialisable", message: expect.stringContaining("list[1].act") }),
      { value: written },
    ]);
  });

  it("that never returns is given up with its session", async () => {
    const { got, after, pid } = await misbehave(where, "hang");
    expect(got).toMatchObject({ name: "TimeoutError", code: "timeout", message: /700 ms/ });
    expect(after).toMatchObject({ code: "session_lost" });
    if (where === "process") await until("its host has ended", () => !isAlive(pid));
  });
});

describe.each(["thread", "process"] as const)("a handler %s", (where) => {
  it("that crashes loses its session, with the exit code and its last words", async () => {
    const { got, after } = await misbehave(where, "crash");
    expect(got).toMatchObject({
      ...{ name: "SessionLostError", code: "session_lost" },
      message: expect.stringMatching(/exit code 3.*the model is on fire/s),
    });
    expect(after).toMatchObject({ code: "session_lost" });
  });

  it("that never lets go of its thread is ended", async () => {
    const { got, after } = await misbehave(where, "spin");
    expect(got).toMatchObject({ name: "TimeoutError", code: "timeout" });
    expect(after).toMatchObject({ code: "session_lost" });
  });
});

it.each([
  ["text", "thrown_value"],
  ["cycles", "Error"],
  ["unreadable", "thrown_value"],
  ["function", "not_serialisable"],
  ["cycle", "not_serialisable"],
  ["nestedFunction", "not_serialisable"],
])("an orchestration that ends with %s fails in words", async (how, code) => {
  await expect(run("throw-out", how)).rejects.toMatchObject({ code, message: expect.stringMatching(/./) });
});

describe("a checkpoint", () => {
  it.each([
    ["throws", "no checkpoint today"],
    ["text", "invalid_checkpoint"],
    ["large", "checkpoint_too_large"],
  ])("that %s is said, and the session goes on", async (how, said) => {
    expect(await run("save-badly", how)).toEqual([1, 2, 3]);
    await until("it was said", () => world.stack.of("worker")[0]?.log().includes(said));
  });
});

describe("a session", () => {
  it.each(["text", "cycles", "unreadable"])("whose init throws %s cannot be had", async (config) => {
    expect(await run<Seen>("open-badly", { what: "init", config })).toMatchObject({
      name: "SessionInitFailed",
      code: "session_init_failed",
    });
  });

  it("whose shutdown throws is closed all the same", async () => {
    expect(await run<Seen>("open-badly", { what: "shutdown" })).toEqual({ value: 1 });
  });

  it("whose model does not fit into the machine cannot be had, and the worker lives on", async () => {
    expect(await run<Seen>("open-badly", { what: "big" })).toMatchObject({
      ...{ name: "SessionInitFailed", code: "session_init_failed" },
      message: expect.stringMatching(/SIGKILL.*allocating 80 GB/s),
    });
  });

  it("that needs more than any worker has is told so", async () => {
    expect(await run<Seen>("open-badly", { what: "much" })).toMatchObject({
      ...{ name: "SessionCreationTimeout", code: "session_creation_timeout" },
      message: expect.stringContaining("vram"),
    });
  });

  it("whose model is missing names the path and the setting", async () => {
    expect(await run<Seen>("open-badly", { what: "model" })).toMatchObject({
      code: "session_init_failed",
      message: expect.stringMatching(/absent\/model.*examples\/models.*allowRemote/s),
    });
  });
});

it("leaves no thread behind", async () => {
  // Each host of the tests above was a thread of its own, or had one.
  await until("the worker has as many threads as at first", () => threadsOf(worker) <= threadsAtFirst + 8);
});
