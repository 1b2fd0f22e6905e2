/** From the start of a process to the moment it is usable. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listMs, median, readyMs, runMs } from "../costs/start-times.ts";
import { judged } from "../report.ts";
import { Rig } from "../rig.ts";
import type { ServiceName } from "../service.ts";
import { percentile } from "../stats.ts";
import type { Workload } from "../workload.ts";

const app = `import { defineOrchestration } from "holdfast";
export const nothing = defineOrchestration("nothing", { run: async () => 0 });
`;
/** Prints how long it took from the import to the first result, and a second month after it. */
const kit = `const began = performance.now();
const { defineOrchestration } = await import("holdfast");
const { testEnvironment } = await import("holdfast/testing");
const nothing = defineOrchestration("nothing", { run: async (ctx) => { await ctx.sleep("30d"); return 0; } });
const env = await testEnvironment({ app: { nothing } });
await (await env.client.start(nothing)).result();
const first = performance.now();
await (await env.client.start(nothing)).result();
process.stdout.write(JSON.stringify({ firstResultMs: first - began, monthMs: performance.now() - first }));
await env.close();
`;

export const startUp: Workload = {
  name: "start-up",
  what: "services until they are ready, verbs of the command line, and the testing kit until its first result",
  layouts: "one",
  async run(bench) {
    const times = bench.size(9, 3);
    const folder = mkdtempSync(join(tmpdir(), "holdfast-start-"));
    const rig = await Rig.open(bench.options, { layout: bench.layout });
    try {
      const [plain, typed, test] = ["app.mjs", "app.ts", "kit.mjs"].map((name) => join(folder, name));
      if (!plain || !typed || !test) return;
      // A project that has the package installed, as an application has.
      writeFileSync(join(folder, "package.json"), '{"type":"module"}');
      mkdirSync(join(folder, "node_modules"));
      symlinkSync(fileURLToPath(new URL("../..", import.meta.url)), join(folder, "node_modules/holdfast"));
      writeFileSync(plain, app);
      writeFileSync(typed, app);
      writeFileSync(
        test,
        kit.replaceAll(/"(holdfast[^"]*)"/g, (_all, name) => JSON.stringify(import.meta.resolve(name))),
      );
      const service = (name: ServiceName, file: string) => readyMs(rig, name, times, { HOLDFAST_APP: file });
      const orchestratorMs = await service("orchestrator", plain);
      const workerMs = await service("worker", plain);
      const watcherMs = await service("watcher", plain);
      const typedWorkerMs = await service("worker", typed);
      const verbMs = await listMs(rig, times);
      const monthsMs: number[] = [];
      const kitFirstResultMs = await median(times, async () => {
        const { firstResultMs, monthMs } = JSON.parse(printed([test])) as Record<string, number>;
        monthsMs.push(monthMs ?? 0);
        return firstResultMs ?? 0;
      });
      const kitMonthMs = percentile(monthsMs, 0.5);
      const emptyMs = await median(times, async () => runMs(["-e", "0"], {}));
      bench.emit({
        emptyMs,
        orchestratorMs,
        workerMs,
        watcherMs,
        typescriptAddsMs: typedWorkerMs - workerMs,
        verbMs,
        kitFirstResultMs,
        kitMonthMs,
        ...judged(Math.max(orchestratorMs, workerMs, watcherMs, kitFirstResultMs), { atMost: 300 }),
      });
    } finally {
      await rig.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

const printed = (args: string[]): string => execFileSync(process.execPath, args, { encoding: "utf8" });
