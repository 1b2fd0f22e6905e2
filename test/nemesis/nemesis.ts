/**
 * A whole fleet of real processes under a seeded nemesis, with users at work; then everything is healed, everybody waits
 * for the end, and `holdfast verify` reads the streams.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { seededRandom, sleep, systemClock } from "../../shared/runtime/index.ts";
import { LeaseLog, type Report, violationLines } from "../../shared/verify/index.ts";
import { until } from "../support/processes/stack.ts";
import { blows } from "./blows.ts";
import { Fleet, type Member } from "./fleet.ts";
import { Load } from "./load.ts";

export interface NemesisOptions {
  seed: number;
  seconds: number;
  instances: number;
  servers: 1 | 3;
  say: (line: string) => void;
  /** Only these blows; all where absent. */
  kinds?: readonly string[];
}

export interface NemesisResult {
  blows: ReadonlyMap<string, number>;
  instances: ReadonlyMap<string, number>;
  branches: ReadonlyMap<string, number>;
  report: Report;
  /** Everything that is not as it should be. */
  wrong: string[];
}

/** I18: what must have been reached for the run to prove something. */
export const rareBranches = [
  "turn.fenced",
  "message.duplicate",
  "completion.late",
  "session.lost",
  "lease.lost",
  "partition.lost",
  "bus.reconnected",
  "instance.loaded",
] as const;

/** How long a fleet that is well again may take to finish everything: many times what it takes. */
const patienceMs = 120_000;
const bin = fileURLToPath(new URL("../../bin/holdfast.js", import.meta.url));

export async function runNemesis(options: NemesisOptions): Promise<NemesisResult> {
  const { seed, seconds, instances, servers, say } = options;
  const folder = mkdtempSync(join(tmpdir(), "holdfast-nemesis-"));
  const journal = join(folder, "journal.jsonl");
  writeFileSync(journal, "");
  const random = seededRandom(seed);
  let keep = false;
  try {
    await using fleet = await Fleet.start(servers, random, journal);
    await using leases = await LeaseLog.start(fleet.stack);
    const load = new Load(fleet.stack.client, journal);
    const struck = new Map<string, number>();
    await Promise.all([load.schedule("hourly", 5), load.schedule("minutely", 8)]);
    const users = load.run(instances, seconds * 1000, random);
    await strikeFor(fleet, seconds * 1000, options, struck);
    say(`${load.ids} instances through ${[...struck].map(([kind, n]) => `${n} × ${kind}`).join(", ")}`);
    await fleet.heal();
    await users;
    const stuck = await load.ended(patienceMs);
    if (stuck.length === 0) await until("the schedules are over", () => schedulesOver(fleet), patienceMs);
    say("verifying");
    const report = await verified(fleet, journal);
    const wrong = [...stuck, ...load.wrong, ...violationLines(report), ...(await deadLetters(fleet))];
    leases.check({
      violation: (law, instanceId, evidence) => void wrong.push(`${law} ${instanceId}: ${evidence}`),
    });
    keep = wrong.length > 0;
    if (keep) say(`journal, logs and histories: ${await keepEvidence(fleet, folder)}`);
    return { blows: struck, instances: load.started, branches: branchesOf(fleet), report, wrong };
  } finally {
    if (!keep) rmSync(folder, { recursive: true, force: true });
  }
}

/** Filling up three copies takes gigabytes of the machine's own disk, and a server whose disk is full gives JetStream up. */
const notOn = { 1: "cut a NATS server off from the others", 3: "fill the store" };
const kindsOn = (servers: 1 | 3): string[] => Object.keys(blows).filter((kind) => kind !== notOn[servers]);

/** One blow after the other, now and then two at once on different members. */
async function strikeFor(
  fleet: Fleet,
  ms: number,
  { seed, say, servers, kinds = kindsOn(servers) }: NemesisOptions,
  struck: Map<string, number>,
): Promise<void> {
  const unknown = kinds.filter((kind) => !blows[kind]);
  if (unknown.length > 0) throw new Error(`no blow is called ${unknown.join(", ")}`);
  const random = seededRandom(seed + 1);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;
  const end = performance.now() + ms;
  const busy = new Set<Member>();
  const under = new Set<Promise<void>>();
  let order: string[] = [];
  while (performance.now() < end) {
    await sleep(systemClock, 300 + random.next() * 1_500);
    // Every kind in its turn, shuffled: a short run meets as many as it can.
    if (order.length === 0) order = [...kinds].sort(() => random.next() - 0.5);
    const kind = order.pop() ?? "kill";
    const member = pick(fleet.members.filter((one) => !busy.has(one)));
    busy.add(member);
    struck.set(kind, (struck.get(kind) ?? 0) + 1);
    const one: Promise<void> = (blows[kind]?.(fleet, member, random) ?? Promise.resolve())
      .catch((error: unknown) => say(`${kind} of ${member.service}: ${String(error)}`))
      .finally(() => {
        busy.delete(member);
        under.delete(one);
      });
    under.add(one);
    if (under.size >= 2 || kind.includes("NATS")) await Promise.race(under);
  }
  await Promise.all(under);
}

async function schedulesOver({ stack }: Fleet): Promise<boolean> {
  const found = await stack.client.list({ limit: 1000 }).catch(() => []);
  return found
    .filter(({ name }) => name === "holdfast-schedule" || name === "steps")
    .every(({ status }) => status === "completed");
}

async function verified({ servers }: Fleet, journal: string): Promise<Report> {
  const url = servers.map((server) => server.url).join(",");
  const args = [bin, "verify", "--json", "--at-rest", "--journal", journal, "--nats-url", url];
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  const run = promisify(execFile);
  // A stream may still be without a leader a moment after its server is back.
  for (let left = 24; ; left--) {
    const { stdout, stderr } = await run(process.execPath, args, { env, maxBuffer: 64 * 1024 * 1024 }).catch(
      // Exit code 1: it has something to say.
      ({ stdout = "", stderr = "" }: { stdout?: string; stderr?: string }) => ({ stdout, stderr }),
    );
    if (stdout) return JSON.parse(stdout);
    if (left === 0 || !stderr.includes("nats_unavailable")) throw new Error(`holdfast verify: ${stderr}`);
    await delay(5_000);
  }
}

/** What a violation is looked into with: what every process said, and the histories as they are now. */
async function keepEvidence({ stack }: Fleet, folder: string): Promise<string> {
  for (const process of stack.processes) writeFileSync(join(folder, `${process.id}.log`), process.log());
  for (const { instanceId: id } of await stack.client.list({ limit: 1000 }).catch(() => [])) {
    const events = await stack.client.history(id).catch(String);
    writeFileSync(join(folder, `history-${id}.json`), JSON.stringify(events, undefined, 1));
  }
  return folder;
}

async function deadLetters({ stack }: Fleet): Promise<string[]> {
  const { letters } = await stack.client.dead.list({ limit: 20 });
  return letters.map(({ subject, reason }) => `dead letter ${subject}: ${reason.code} ${reason.message}`);
}

function branchesOf({ stack }: Fleet): Map<string, number> {
  const counts = new Map<string, number>(rareBranches.map((branch) => [branch, 0]));
  for (const process of stack.processes)
    for (const [, kind = ""] of process.log().matchAll(/"kind":"([a-z._]+)"/g))
      if (counts.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
