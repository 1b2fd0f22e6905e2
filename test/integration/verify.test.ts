/**
 * `holdfast verify` on the streams of a real server that were spoilt by hand: it names every law and the instance that
 * breaks it. What each law takes for a violation is tested in simulation/verify and unit/verify.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Commit, InstanceSummary, WorkerInfo } from "../../schemas/index.ts";
import {
  type Bus,
  bucketSubject,
  connectBus,
  encode,
  ensureTopology,
  leaseKeys,
  subjects,
} from "../../shared/bus/index.ts";
import { hash32, silent } from "../../shared/runtime/index.ts";
import { lawIds, type Report } from "../../shared/verify/index.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";
import { runCli } from "../support/processes/cli.ts";
import {
  active,
  broken,
  done,
  history,
  type Loose,
  open,
  request,
  start,
} from "../support/worlds/broken-histories.ts";

const names = subjects();
const historyShards = 2;
let nats: TestNats;
let bus: Bus;
let folder: string;
/** The law and the instance of everything that was spoilt. */
const planted: string[] = [];

beforeAll(async () => {
  nats = await startNats();
  bus = await connectBus({ url: nats.url, blobBucket: names.blobBucket, announce: silent });
  await ensureTopology(bus, names, { partitions: 1, historyShards, replicas: 1 });
  folder = await mkdtemp(join(tmpdir(), "holdfast-verify-"));
});
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function plant(law: string, id: string, commits: readonly Commit[]): Promise<void> {
  planted.push(`${law} ${id}`);
  for (const commit of commits)
    await bus.publish(
      names.sharedHistory(hash32(id) % historyShards, id),
      encode({ ...commit, instanceId: id }),
    );
}

const turn = (...events: Loose[]): Commit[] => history({ events });

const write = (bucket: "leases" | "workers" | "instances", key: string, value: unknown) =>
  bus.publish(bucketSubject(names.bucket(bucket), key), encode(value));

const hold = (sessionId: string, attachment: number, holder: string, instanceId: string) =>
  write("leases", leaseKeys.session(sessionId, attachment), {
    ...{ v: 1, holder },
    session: { instanceId, sessionId, attachment },
  });

async function spoil(): Promise<unknown[]> {
  for (const [index, [law, , turns]] of broken.entries())
    await plant(law, `broken-${index}`, history(...turns));
  await plant("I5", "decides-otherwise", turn(start, { kind: "timer.created", fireAt: 9e12 }));
  await plant("I8", "not-told", turn(start, { ...open, sessionId: "lone" }, asked("lone"), held("lone")));
  const child = { kind: "child.scheduled", name: "demo", childId: "nobody", input: { json: 1 } };
  await plant("I9", "alone", turn(start, { ...child, mode: "attached", grants: [] }));
  await plant("I16", "deaf", turn(start, { kind: "cancel.requested" }));
  const blob = { key: "large/1", bytes: 3, sha256: "0".repeat(64) };
  await plant("VALUE-2", "large", turn({ ...start, input: { blob } }));
  await plant("E2", "shown", turn(start, done));
  const summary = { v: 1, instanceId: "shown", name: "demo", status: "failed", execution: 1 };
  await write("instances", "shown", InstanceSummary.parse({ ...summary, events: 2, updatedAt: 1 }));
  await plant("I6", "twice", turn(start));
  for (const [attachment, holder] of ["a", "b"].entries())
    await hold("double", attachment + 1, holder, "twice");
  planted.push("I14 -", "I15 gone", "QUOTA-1 -");
  await hold("stray", 1, "a", "gone");
  await write("workers", "a", crowded);
  planted.push("I1 ghost", "I17 alone", "I1 shown", "I12 twice", "I13 -", "CALL-1 calls");
  const call = { kind: "call", sessionId: "s", epoch: 3, instanceId: "calls", attempt: 1 };
  return [
    { kind: "started", instanceId: "ghost" },
    { kind: "started", instanceId: "alone", ends: true },
    { kind: "ended", instanceId: "shown", status: "completed", output: 7 },
    { kind: "signalled", instanceId: "twice", name: "go", value: 1 },
    { kind: "shutdown", sessionId: "s", epoch: 3 },
    { kind: "shutdown", sessionId: "s", epoch: 3 },
    { ...call, of: 8 },
    { ...call, of: 7 },
  ];
}

const asked = (sessionId: string): Loose => ({ ...request(1), sessionId });
const held = (sessionId: string): Loose => ({ ...active(1, 5), sessionId });

const none = { used: 0, max: 0 };
const crowded = WorkerInfo.parse({
  ...{ v: 1, workerId: "a", nodeId: "a", host: "h", pid: 1, resourceId: "a", buildId: "b" },
  ...{ startedAt: 1, seenAt: 1, draining: false, tags: [], resources: { total: {}, used: {} } },
  ...{ activities: [], sessionTypes: [], slots: { activities: none, calls: none, sessions: none } },
  ...{ perType: {}, quotas: { all: none, types: {} }, warm: [], models: [] },
  ...{ rssBytes: 1, eventLoopDelayMs: 0, sessions: [] },
});

it("names every law that is broken, and by what", async () => {
  const journal = join(folder, "journal.jsonl");
  await writeFile(journal, (await spoil()).map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const app = join(folder, "app.ts");
  await writeFile(
    app,
    `import { defineOrchestration } from "holdfast";
     export const demo = defineOrchestration("demo", { run: async (ctx) => ctx.waitForSignal("go") });`,
  );
  const args = ["verify", "--json", "--at-rest", "--journal", journal, "--app", app];
  const { code, stdout, stderr } = await runCli(args, { env: { NATS_URL: nats.url } });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  const { violations }: Report = JSON.parse(stdout);
  const said = new Set(violations.map(({ law, instanceId }) => `${law} ${instanceId ?? "-"}`));
  expect(planted.filter((one) => !said.has(one))).toEqual([]);
  const laws = new Set(violations.map(({ law }) => law));
  // I18 is about a run: what it has reached is counted by whoever runs it.
  expect(lawIds.filter((law) => !laws.has(law))).toEqual(["I18"]);
});
