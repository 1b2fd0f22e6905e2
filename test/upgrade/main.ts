/**
 * `npm run test:upgrade [-- --record]`: real processes of the build before and of this one, side by side, under load with
 * sessions, children, pools and timers; replaced one by one, forwards, back, and forwards again. Exits with 0, with 1 where
 * something is wrong, with 77 where the earlier commit cannot be had.
 */
import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { newestGeneration } from "../../schemas/index.ts";
import { Fleet } from "../../shared/fleet/index.ts";
import { silent, sleep, systemClock } from "../../shared/runtime/index.ts";
import { verify, violationLines } from "../../shared/verify/index.ts";
import { type ServiceName, type ServiceProcess, Stack, until } from "../support/processes/stack.ts";
import { Load } from "./load.ts";
import { previousBuild, previousCommit } from "./previous-build.ts";

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const app = fileURLToPath(new URL("./app.ts", import.meta.url));
const env = {
  HOLDFAST_ORCHESTRATOR_LEASE_TTL_MS: "3000",
  WORKER_DRAIN_TIMEOUT: "3s",
  WORKER_LEASE_TTL: "3s",
  WATCHER_LEASE_TTL: "2s",
  LOG_LEVEL: "warn",
};
/** One after the other, mixed as a deployment tool would. */
const services: readonly ServiceName[] = [
  "worker",
  "orchestrator",
  "watcher",
  "worker",
  "orchestrator",
  "worker",
  "watcher",
];
const betweenMs = 1_000;

type Build = "previous" | "held" | "new";

interface Step {
  what: string;
  seconds: number;
  ended: number;
  written: number;
}

async function main(): Promise<number> {
  const previous = await previousBuild(say);
  if (!previous) {
    say(`commit ${previousCommit} is not in this clone (a shallow one?): nothing to upgrade from, not run`);
    return 77;
  }
  try {
    return await rolling(previous.bin);
  } finally {
    await previous.remove();
  }
}

async function rolling(previousBin: string): Promise<number> {
  await using stack = await Stack.start({ app, orchestrators: 0, workers: 0, watchers: 0, env });
  const run = (service: ServiceName, build: Build): Promise<ServiceProcess> => {
    if (build === "previous") return stack.run(service, {}, previousBin);
    return stack.run(service, build === "held" ? { HOLDFAST_GENERATION: "1" } : {});
  };
  const alive: ServiceProcess[] = [];
  for (const service of services) alive.push(await run(service, "previous"));
  const fleet = new Fleet({
    bus: stack.bus,
    names: stack.names,
    runtime: { clock: systemClock, announce: silent },
  });
  await fleet.start();
  const load = new Load(stack.client);
  load.begin(200);
  const steps: Step[] = [];
  const replaceAll = async (what: string, build: Build): Promise<void> => {
    const since = performance.now();
    const before = load.ended;
    for (const [place, old] of [...alive].entries()) {
      // The new one is there before the old one goes; the second worker goes without a word.
      alive[place] = await run(old.service, build);
      if (place === 3) old.kill("SIGKILL");
      else await old.stop();
      await sleep(systemClock, betweenMs);
    }
    const seconds = Math.round((performance.now() - since) / 1000);
    steps.push({ what, seconds, ended: load.ended - before, written: fleet.written });
    say(JSON.stringify(steps.at(-1)));
  };
  await sleep(systemClock, 5_000);
  await replaceAll("upgraded, with the way back kept open", "held");
  const heldAt = fleet.written;
  await replaceAll("rolled back", "previous");
  await replaceAll("upgraded for good", "new");
  await until("the new generation is written", async () => fleet.written === newestGeneration, 90_000);
  await sleep(systemClock, 5_000);
  await load.finish();
  await fleet.stop();

  const dead = (await stack.bus.streamInfo(stack.names.deadStream))?.messages ?? 0;
  const summaries = await stack.client.list({ limit: 10_000 });
  const unfinished = summaries.filter(({ status }) => status !== "completed");
  const logs = stack.processes.map((one) => one.log()).join("\n");
  const disagreements = logs
    .split("\n")
    .filter((line) => /nondeterminism|invalid_entry|history_unreadable/.test(line));
  const laws = await verify({ bus: stack.bus, names: stack.names });
  const wrong = [
    ...load.wrong,
    ...violationLines(laws),
    ...(dead === 0 ? [] : [`${dead} dead letters`]),
    ...(heldAt === 1 ? [] : [`generation ${heldAt} was written while the way back was to be open`]),
    ...unfinished
      // Keepers of pools linger a little.
      .filter(({ name }) => !name?.startsWith("holdfast-"))
      .map(({ instanceId, status }) => `${instanceId} is ${status}`),
    ...disagreements.slice(0, 5),
  ];
  for (const line of wrong) say(`WRONG ${line}`);
  if (wrong.length > 0) return 1;
  const lines = report(steps, load);
  say(lines);
  if (process.argv.includes("--record")) await record(lines);
  return 0;
}

function report(steps: readonly Step[], load: Load): string {
  const rows = steps.map(
    ({ what, seconds, ended, written }) => `| ${what} | ${seconds} s | ${ended} | ${written} |`,
  );
  const each = [...load.counts].map(([name, count]) => `${count} ${name}`).join(", ");
  return [
    `On ${cpus().length} cores, ${services.length} processes, from ${previousCommit}: ${load.ended} instances (${each}), all with the`,
    "right result; dead letters 0, parked 0, disagreements with a history 0.",
    "",
    "| while all processes were | took | instances ended | generation written at its end |",
    "| --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

/** Between the marks in docs/upgrading.md. */
async function record(lines: string): Promise<void> {
  const file = fileURLToPath(new URL("../../docs/upgrading.md", import.meta.url));
  const text = await readFile(file, "utf8");
  const marked = /(<!-- upgrade-result -->\n)[\s\S]*(<!-- \/upgrade-result -->)/;
  await writeFile(
    file,
    text.replace(marked, (_all, from: string, to: string) => `${from}\n${lines}\n\n${to}`),
  );
}

process.exitCode = await main();
