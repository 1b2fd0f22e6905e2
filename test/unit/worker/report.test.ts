import { expect, it } from "vitest";
import { ActivityTask } from "../../../schemas/index.ts";
import { publishReport } from "../../../services/worker/activities/index.ts";
import { Pulse } from "../../../services/worker/activities/running/heartbeats.ts";
import type { WorkerDeps } from "../../../services/worker/deps.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { Payloads, type PublishOptions, type PublishOutcome, subjects } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { type Happening, seededRandom } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";

interface Published {
  subject: string;
  body: unknown;
  options: PublishOptions | undefined;
}

/** Only what these parts touch; each publish is answered by the next of the answers, the last one for ever. */
function setUp(answers: (PublishOutcome | Fault)[]) {
  const clock = new SimulatedClock();
  const happenings: Happening[] = [];
  const published: Published[] = [];
  const settings = { nodeId: "n", resourceId: undefined, buildId: "b" };
  const bus = {
    async publish(subject: string, body: Uint8Array, options?: PublishOptions) {
      published.push({ subject, body: JSON.parse(new TextDecoder().decode(body)), options });
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Fault) throw answer;
      return answer;
    },
  } as unknown as WorkerDeps["bus"];
  const runtime = { clock, random: seededRandom(5), announce: (h: Happening) => happenings.push(h) };
  const deps = {
    bus,
    runtime,
    names: subjects(),
    payloads: new Payloads({} as WorkerDeps["bus"]["blobs"]),
    identity: createIdentity(settings, { host: "h", pid: 1 }, seededRandom(6)),
  };
  return { clock, happenings, published, deps };
}

const task = ActivityTask.parse({
  ...{ v: 1, instanceId: "i", execution: 2, of: 5, attempt: 3, name: "a", input: { json: 1 } },
  ...{ scheduledAt: 0, timeouts: { heartbeatMs: 2000 }, reportStart: false },
});

const stored: PublishOutcome = { kind: "stored", seq: 1, duplicate: false };

it("sends a report until it is stored, always under the same id (BUS-1)", async () => {
  const away = new Fault("transient", { code: "nats_unavailable", message: "away" });
  const { clock, published, happenings, deps } = setUp([{ kind: "unknown" }, away, stored]);
  let outcome: string | undefined;
  void publishReport(deps, task, { kind: "started" }).then((how) => {
    outcome = how;
  });
  await clock.runUntil(() => outcome !== undefined);
  expect(outcome).toBe("stored");
  expect(published.map(({ options }) => options?.msgId)).toEqual(Array(3).fill("act-i-2-5-3-started"));
  expect(happenings).toMatchObject([{ kind: "fault", code: "nats_unavailable" }]);
});

it("gives reports of different epochs different ids", async () => {
  const { published, deps } = setUp([stored]);
  await publishReport(deps, task, { kind: "started" }, { epoch: 7 });
  await publishReport(deps, task, { kind: "started" }, { epoch: 8 });
  expect(published.map(({ options }) => options?.msgId)).toEqual([
    "act-i-2-5-3-e7-started",
    "act-i-2-5-3-e8-started",
  ]);
  expect(published[0]?.body).toMatchObject({ epoch: 7 });
});

it("stops trying when the process goes", async () => {
  const { deps } = setUp([{ kind: "unknown" }]);
  const going = new AbortController();
  const reporting = publishReport(deps, task, { kind: "started" }, { signal: going.signal });
  going.abort();
  expect(await reporting).toBe("given_up");
});

it("writes heartbeats seldom, the latest last, and nothing after it was closed", async () => {
  const { clock, published, deps } = setUp([stored]);
  const pulse = new Pulse(deps, task);
  for (let page = 0; page < 100; page++) {
    pulse.beat({ page });
    await clock.advance(10);
  }
  expect(published.length).toBeLessThanOrEqual(3);
  pulse.beat({ page: "last" });
  await pulse.close(true);
  expect(published.at(-1)?.body).toMatchObject({ attempt: 3, details: { page: "last" } });
  const before = published.length;
  pulse.beat({ page: "late" });
  await clock.advance(10_000);
  expect(published).toHaveLength(before);
});

it("does not fall over heartbeat details that have no JSON form", async () => {
  const { happenings, published, deps } = setUp([stored]);
  const pulse = new Pulse(deps, task);
  pulse.beat(1n);
  await pulse.close(true);
  expect(published).toEqual([]);
  expect(happenings).toMatchObject([{ kind: "fault", code: "heartbeat_lost" }]);
});
