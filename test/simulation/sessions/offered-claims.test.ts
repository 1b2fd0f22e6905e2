/**
 * A claim goes straight to a worker, and the answer says that the state is ready (CLAIM-5). What happens when
 * the offer, the answer, its confirmation or a process is lost on the way.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { ClaimAnswer } from "../../../schemas/index.ts";
import { decode, encode } from "../../../shared/bus/index.ts";
import { call, collectApp, defineOrchestration, defineSession } from "../../../shared/definitions/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { type Said, tapWorld } from "../../support/nats/tapped-bus.ts";

let world: World;
let inits = 0;

const counter = defineSession("counter", {
  init: () => {
    inits++;
    return { n: 0 };
  },
  calls: { add: call({ input: z.int(), run: (state: { n: number }, n) => (state.n += n) }) },
});
const opens = defineOrchestration("opens", {
  run: async (ctx) => {
    await using session = await ctx.openSession(counter);
    return await session.add(7);
  },
});
const keeps = defineOrchestration("keeps", {
  run: async (ctx) => {
    await using session = await ctx.openSession(counter, { creationTimeout: "10m" });
    await ctx.waitForSignal("go");
    return await session.add(1);
  },
});

beforeEach(async () => {
  inits = 0;
  world = new World({ seed: 5, app: collectApp({ counter, opens, keeps }), faults: noFaults });
  await world.prepare();
});

const stored = (stream: string): number => world.everStored(stream);
const isAnswer = ({ subject, answer }: Said): boolean => answer && subject.startsWith("offers.");
const activations = async (id: string): Promise<number> => {
  const commits = (await world.history(id)) ?? [];
  checkHistory(commits);
  return commits.flatMap(({ events }) => events).filter(({ kind }) => kind === "session.activated").length;
};
const isInboxEmpty = async (): Promise<boolean> => {
  await world.clock.advance(5_000);
  return (await world.run(world.outside.streamInfo(world.names.inboxStream)))?.messages === 0;
};

describe("on a good day", () => {
  test("neither the claim nor the report is stored, and the start is acknowledged at the end", async () => {
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    const handle = await world.start("opens", null, "a");
    expect(await world.run(handle.result())).toBe(7);
    expect(stored(world.names.claimsStream)).toBe(0);
    expect(stored(world.names.inboxStream), "the start alone").toBe(1);
    expect(stored(world.names.timersStream), "no deadline for what is there already").toBe(0);
    expect(await activations("a")).toBe(1);
    expect(await isInboxEmpty()).toBe(true);
    expect(stored(world.names.inboxStream), "the confirmed report does not come again").toBe(1);
  });

  test("many at once are dealt out to the workers before either has registered again", async () => {
    await world.orchestrator();
    await world.watcher();
    const workers = [await world.worker(), await world.worker()];
    const taken = new Map<string, number>();
    await world.run(
      world.outside.subscribe("offers.*.*", {}, ({ subject }) => {
        const [, workerId = ""] = subject.split(".");
        taken.set(workerId, (taken.get(workerId) ?? 0) + 1);
      }),
    );
    const handles = await Promise.all(
      Array.from({ length: 8 }, (_, i) => world.start("keeps", null, `i${i}`)),
    );
    await world.clock.advance(150);
    expect(workers.map(({ id }) => taken.get(id))).toEqual([4, 4]);
    expect(stored(world.names.claimsStream)).toBe(0);
    for (const handle of handles) await world.run(handle.signal("go"));
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())))).toEqual(Array(8).fill(1));
  });
});

describe("by the queue", () => {
  test("no worker is there yet", async () => {
    await world.orchestrator();
    await world.watcher();
    const handle = await world.start("opens", null, "a");
    await world.clock.advance(1_000);
    await world.worker();
    expect(await world.run(handle.result())).toBe(7);
    expect(stored(world.names.claimsStream)).toBe(1);
  });

  test("the answer cannot be read: the claim is queued too, the state is made once", async () => {
    tapWorld(world, (said) => (isAnswer(said) ? { ...said, body: encode("what?") } : said));
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    await world.worker();
    const handle = await world.start("opens", null, "a");
    expect(await world.run(handle.result())).toBe(7);
    expect(stored(world.names.claimsStream)).toBe(1);
    expect(inits).toBe(1);
    expect(await activations("a")).toBe(1);
    expect(await isInboxEmpty()).toBe(true);
  });

  test("a claim does not overtake those that wait for the worker", async () => {
    await world.orchestrator();
    await world.watcher();
    await world.worker(undefined, { settings: { WORKER_MAX_SESSIONS: "1" } });
    const ids = ["a", "b", "c"];
    const begun: string[] = [];
    const handles = [];
    for (const id of ids) {
      handles.push(await world.start("keeps", null, id));
      await world.clock.advance(500);
    }
    for (const handle of handles) {
      const sessions = await world.run(world.client.sessions.list());
      const held = sessions.filter(({ phase }) => phase === "active");
      begun.push(...held.map(({ instanceId }) => instanceId));
      await world.run(handle.signal("go"));
      await world.run(handle.result());
      await world.clock.advance(2_000);
    }
    expect(begun).toEqual(ids);
  });
});

describe("answers that are not believed", () => {
  const spoil = (change: (answer: ClaimAnswer) => ClaimAnswer) =>
    tapWorld(world, (said) => {
      if (!isAnswer(said)) return said;
      const answer = decode(ClaimAnswer, said.body);
      return answer.kind === "ok" ? { ...said, body: encode(change(answer.value)) } : said;
    });

  test.each([
    ["another session", (answer: ClaimAnswer) => ({ ...answer.report, sessionId: "other-s1" })],
    ["another attachment", (answer: ClaimAnswer) => ({ ...answer.report, attachment: 9 })],
    ["an end", (answer: ClaimAnswer) => ({ ...answer.report, report: { kind: "closed" } })],
  ])("a report about %s: the report by the inbox counts", async (_what, report) => {
    spoil((answer) => ({ ...answer, report: report(answer) as ClaimAnswer["report"] }));
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    const handle = await world.start("opens", null, "a");
    expect(await world.run(handle.result())).toBe(7);
    expect(stored(world.names.claimsStream)).toBe(0);
    expect(await activations("a")).toBe(1);
    expect(inits).toBe(1);
  });
});

describe("what is lost after the answer", () => {
  test("the confirmation: the report comes again by the inbox and changes nothing", async () => {
    tapWorld(world, (said) =>
      said.subject.startsWith("lanes.recordings.") ? { ...said, body: encode({ v: 1, keys: [] }) } : said,
    );
    await world.orchestrator();
    await world.watcher();
    await world.worker();
    const handle = await world.start("keeps", null, "a");
    await world.clock.advance(5_000);
    expect(stored(world.names.inboxStream), "the start, and the report again").toBe(2);
    await world.run(handle.signal("go"));
    expect(await world.run(handle.result())).toBe(1);
    expect(await activations("a")).toBe(1);
    expect(await isInboxEmpty()).toBe(true);
  });

  test("the orchestrator: the next one gets the report by the inbox, and the state is not made again", async () => {
    let kill: () => void = () => undefined;
    let answers = 0;
    tapWorld(world, (said) => {
      if (isAnswer(said) && answers++ === 0) kill();
      return said;
    });
    const first = await world.orchestrator();
    kill = () => first.kill();
    await world.watcher();
    await world.worker();
    const handle = await world.start("opens", null, "a");
    await world.clock.advance(100);
    expect(answers).toBe(1);
    await world.orchestrator();
    expect(await world.run(handle.result(), 120_000)).toBe(7);
    expect(inits).toBe(1);
    expect(await activations("a")).toBe(1);
    expect(await isInboxEmpty()).toBe(true);
  });

  test("the worker: its lease runs out, and another makes the state", async () => {
    let kill: () => void = () => undefined;
    let answers = 0;
    tapWorld(world, (said) => {
      if (isAnswer(said) && answers++ === 0) kill();
      return said;
    });
    await world.orchestrator();
    await world.watcher();
    const worker = await world.worker();
    kill = () => worker.kill();
    const handle = await world.start("keeps", null, "a");
    await world.clock.advance(100);
    expect(answers).toBe(1);
    await world.worker();
    await world.clock.advance(60_000);
    await world.run(handle.signal("go"));
    expect(await world.run(handle.result(), 120_000)).toBe(1);
    expect(inits).toBe(2);
  });
});
