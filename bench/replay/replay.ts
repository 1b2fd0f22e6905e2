/** A process that replays one instance repeatedly, like an orchestrator that does not have it in memory. */
import { fileURLToPath } from "node:url";
import type { InstanceHost } from "../../shared/replay/index.ts";
import { percentile } from "../stats.ts";
import { readRaw } from "./read-raw.ts";

export interface ReplayResult {
  events: number;
  commits: number;
  /** Medians of the rounds: reading, all of it, and the same messages without an engine. */
  readMs: number;
  totalMs: number;
  floorMs: number;
  /** The very first round, before the code is compiled. */
  firstMs: number;
}

// As it is built: the loader of TypeScript gives every function its name anew whenever it is made.
const built = (path: string): string => new URL(`../../.build/shared/${path}.js`, import.meta.url).href;
const { loadApp }: typeof import("../../shared/app-loading/load-app.ts") = await import(
  built("app-loading/load-app")
);
const { connectBus, subjects }: typeof import("../../shared/bus/index.ts") = await import(built("bus/index"));
const { HistoryStore }: typeof import("../../shared/history/index.ts") = await import(built("history/index"));
const { Instance, installGuards }: typeof import("../../shared/replay/index.ts") = await import(
  built("replay/index")
);
const { silent, systemRuntime }: typeof import("../../shared/runtime/index.ts") = await import(
  built("runtime/index")
);

const [, , url = "", instanceId = "", layout = "", rounds = "5"] = process.argv;
const app = await loadApp(fileURLToPath(new URL("../app/app.ts", import.meta.url)));
const names = subjects();
const bus = await connectBus({ url, blobBucket: names.blobBucket, announce: silent });
const history = new HistoryStore({
  bus,
  names,
  layout: layout === "shared" ? "shared" : "per-instance",
  maxOwnStreams: 0,
  shards: 16,
  replicas: 1,
  runtime: systemRuntime(),
});
const host: InstanceHost = {
  app,
  payloads: {
    inlineBytes: 256 * 1024,
    store: () => Promise.reject(new Error("a replay stores nothing")),
    fetch: () => Promise.reject(new Error("there are no big payloads here")),
  },
  placement: { whyUnclaimed: () => "" },
  log: () => undefined,
};
installGuards();

const reads: number[] = [];
const totals: number[] = [];
const floors: number[] = [];
let events = 0;
let commits = 0;
for (let round = 0; round < Number(rounds); round++) {
  const begun = performance.now();
  const loaded = await history.load(instanceId);
  if (!loaded) throw new Error(`${instanceId} has no history`);
  reads.push(performance.now() - begun);
  const instance = new Instance(instanceId, host);
  await instance.load(loaded.commits);
  totals.push(performance.now() - begun);
  if (instance.parked) throw instance.parked;
  commits = loaded.commits.length;
  events = loaded.commits.reduce((sum, commit) => sum + commit.events.length, 0);
  const rawBegun = performance.now();
  await readRaw(url, loaded.position.stream, loaded.position.subject, commits);
  floors.push(performance.now() - rawBegun);
}
const result: ReplayResult = {
  events,
  commits,
  readMs: percentile(reads, 0.5),
  totalMs: percentile(totals, 0.5),
  floorMs: percentile(floors, 0.5),
  firstMs: totals[0] ?? Number.NaN,
};
await bus.close();
process.send?.(result, () => process.exit());
