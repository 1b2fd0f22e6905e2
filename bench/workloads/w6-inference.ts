import { fileURLToPath } from "node:url";
import type { InferInput } from "../app/inference.ts";
import { BareModel } from "../floor/bare-model.ts";
import { judged } from "../report.ts";
import { Rig } from "../rig.ts";
import { intervals, percentile } from "../stats.ts";
import type { Bench, Workload } from "../workload.ts";

interface Way extends InferInput {
  variant: string;
  what: string;
  /** True if quick mode runs it too. */
  quick: boolean;
}

const probe = fileURLToPath(new URL("../probe.js", import.meta.url));

/** The floor is the bare model in a process of its own: one by one for a and b, in the same batches for c to e. */
export const w6: Workload = {
  name: "W6",
  what: "inference: texts per second in every way, beside the bare model",
  layouts: "one",
  async run(bench) {
    const bare = await BareModel.start();
    const rig = await Rig.start(bench.options, {
      layout: bench.layout,
      app: "inference",
      workers: 2,
      watcher: true,
      workerArgv: ["--import", probe],
    });
    try {
      const warmCallMs = await warmCall(rig);
      const ways = waysOf(bench.size(2000, 100), bench.size(60, 3));
      for (const way of ways.filter(({ quick }) => quick || !bench.options.quick)) {
        await measure(bench, rig, way, bare, warmCallMs).catch((error: unknown) => {
          throw new Error(`${way.variant}, ${way.what}: ${String(error)}`);
        });
      }
    } finally {
      await bare.stop();
      await rig.stop();
    }
  },
};

const waysOf = (count: number, coldCount: number): Way[] => [
  { variant: "a", what: "model loaded per call", way: "cold", texts: coldCount, width: 1, quick: true },
  {
    variant: "b",
    what: "one warm session, in sequence",
    way: "one-by-one",
    texts: count,
    width: 1,
    quick: true,
  },
  {
    variant: "c",
    what: "64 at a time, no batching",
    way: "one-by-one",
    texts: count,
    width: 64,
    quick: false,
  },
  { variant: "d", what: "64 at a time, batched", way: "batched", texts: count, width: 64, quick: true },
  {
    variant: "d-thread",
    what: "the same in a thread",
    way: "batched-thread",
    texts: count,
    width: 64,
    quick: false,
  },
  {
    variant: "e",
    what: "64 at a time, pool over 2 workers",
    way: "pooled",
    texts: count,
    width: 64,
    quick: true,
  },
];

/** The bare model runs right before each, so that what else the machine does hits both alike. */
async function measure(
  bench: Bench,
  rig: Rig,
  { variant, what, way, texts, width }: Way,
  bare: BareModel,
  warmCallMs: number,
): Promise<void> {
  const bareMs = await bare.perTextMs(bench.size(500, 60), width > 1);
  for (const worker of rig.workers) await worker.ask("loop");
  const handle = await rig.client.start("infer", { way, texts, width });
  const perTextMs = ((await handle.result({ timeout: bench.size(600_000, 40_000) })) as number) / texts;
  const loops = await Promise.all(rig.workers.map((worker) => worker.ask<{ p99Ms: number }>("loop")));
  bench.emit({
    variant,
    what,
    texts,
    textsPerSecond: 1000 / perTextMs,
    floorTextsPerSecond: 1000 / bareMs,
    ratio: bareMs / perTextMs,
    ratioOf: "textsPerSecond",
    loopDelayP99Ms: Math.max(...loops.map((loop) => loop.p99Ms)),
    ...verdict(variant, perTextMs, bareMs, warmCallMs),
  });
}

/** (b) may cost 1.3 × the bare call and one warm call; (d) must reach 0.8 × the bare batches. */
function verdict(variant: string, perTextMs: number, bareMs: number, warmCallMs: number) {
  if (variant === "d") return judged(bareMs / perTextMs, { atLeast: 0.8 });
  if (variant !== "b") return {};
  const limitMs = 1.3 * bareMs + warmCallMs;
  return { perTextMs, limitMs, warmCallMs, aim: "perTextMs <= limitMs", met: perTextMs <= limitMs };
}

/** Returns the median time of a call on an open session. */
async function warmCall({ client }: Rig): Promise<number> {
  const handle = await client.start("stamped-calls", { n: 200 });
  await handle.signal("go");
  return percentile(intervals((await handle.result()) as number[]), 0.5);
}
