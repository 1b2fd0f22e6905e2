/**
 * `npm run bench`: runs every workload on the engine and on the floor, on one server, and prints one line
 * each.
 */
import { type BenchOptions, type Layout, layouts, readOptions, usage } from "./options.ts";
import { asJson, asText, type Line } from "./report.ts";
import { Rig } from "./rig.ts";
import { runPeers } from "./run-peers.ts";
import { SharedRigs } from "./shared-rigs.ts";
import { soak } from "./soak.ts";
import type { Bench, Workload } from "./workload.ts";
import { workloads } from "./workloads/index.ts";

/** Quick mode begins no workload after `beginMs` and gives up the running one after `endMs`. */
const quickLimits = { beginMs: 50_000, endMs: 56_000 };
/** A workload that is not over by then has failed. */
const workloadLimitMs = 20 * 60_000;

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (options.peers) return runPeers(options);
  if (options.soakMs !== undefined) return soak(options, options.soakMs);
  const chosen = choose(options);
  const runner = new Runner(options);
  if (!options.json) process.stdout.write(`${about(options)}\n`);
  const first = options.layout ?? "per-instance";
  for (const layout of options.layout ? [options.layout] : layouts) {
    const both = ({ layouts: which }: Workload) =>
      which === "both" || (which === "both-unless-quick" && (!options.quick || layout === first));
    await runner.runAll(chosen.filter(both), layout);
  }
  await runner.runAll(
    chosen.filter((workload) => workload.layouts === "one"),
    first,
  );
  return runner.failed ? 1 : 0;
}

function choose({ only }: BenchOptions): Workload[] {
  const unknown = only.filter((name) => !workloads.some((workload) => workload.name.toLowerCase() === name));
  if (unknown.length > 0) {
    const names = workloads.map((workload) => workload.name).join(", ");
    throw new Error(`--only ${unknown.join(",")}: there are ${names}`);
  }
  return workloads.filter((workload) => only.length === 0 || only.includes(workload.name.toLowerCase()));
}

const about = ({ sync, quick }: BenchOptions): string =>
  `Holdfast benchmark${quick ? " (quick)" : ""}, Node ${process.version}, sync ${sync}; floor: the same NATS operations without an engine`;

const outOfTime = { skipped: "no time left in --quick" };

class Runner {
  failed = false;
  readonly #options: BenchOptions;
  readonly #startedAt = performance.now();

  constructor(options: BenchOptions) {
    this.#options = options;
  }

  async runAll(chosen: readonly Workload[], layout: Layout): Promise<void> {
    const shared = new SharedRigs(this.#options, layout);
    try {
      for (const workload of chosen) await this.#run(workload, layout, shared);
    } finally {
      await shared.stop();
    }
  }

  async #run(workload: Workload, layout: Layout, shared: SharedRigs): Promise<void> {
    const options = this.#options;
    const emit = (figures: Omit<Line, "workload" | "layout">) =>
      this.#print({ workload: workload.name, layout, ...figures, sync: options.sync, quick: options.quick });
    if (options.quick && this.#elapsedMs() > quickLimits.beginMs) return emit(outOfTime);
    const bench: Bench = {
      options,
      layout,
      rig: shared.rig,
      floor: shared.floor,
      sessionRig: shared.sessionRig,
      sessionFloor: shared.sessionFloor,
      size: (full, quick) => (options.quick ? quick : full),
      emit,
    };
    const startedAt = performance.now();
    try {
      if ((await this.#inTime(workload.run(bench), shared)) === "late") emit(outOfTime);
    } catch (error) {
      this.failed = true;
      emit({ failed: error instanceof Error ? error.message : String(error) });
    }
    const seconds = (performance.now() - startedAt) / 1000;
    if (!options.json) process.stderr.write(`         ${workload.what} (${seconds.toFixed(1)} s)\n`);
  }

  /** `late` only in quick mode, where running out of time is no failure. */
  async #inTime(run: Promise<void>, shared: SharedRigs): Promise<"done" | "late"> {
    const { quick } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(resolve, quick ? quickLimits.endMs - this.#elapsedMs() : workloadLimitMs, "late");
    });
    const giveUp = async (): Promise<void> => {
      run.catch(() => undefined); // it fails once its server is gone; that failure is not reported again
      await shared.stop();
      await Rig.stopAll();
    };
    try {
      const first = await Promise.race([run.then(() => "done" as const), late]);
      if (first === "late") await giveUp();
      if (first === "late" && !quick) throw new Error(`not over after ${workloadLimitMs / 60_000} minutes`);
      return first;
    } catch (error) {
      await giveUp();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  #print(line: Line): void {
    process.stdout.write(`${this.#options.json ? asJson(line) : asText(line)}\n`);
  }
}

// A second Ctrl-C ends it at once.
process.once("SIGINT", () => void Rig.stopAll().finally(() => process.exit(130)));

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);
