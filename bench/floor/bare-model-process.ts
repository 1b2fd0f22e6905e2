import { loadPipeline } from "../../shared/inference/index.ts";
import { model } from "../app/model.ts";
import { machineMs } from "../clock.ts";
import type { BareLoad } from "./bare-model.ts";

const pipeline = await loadPipeline({ ...model, task: "text-classification" });

process.on("message", (load) => void measure(load as BareLoad));
process.on("disconnect", () => process.exit());
process.send?.("ready");

async function measure({ texts, batchSize }: BareLoad): Promise<void> {
  const batches: string[][] = [];
  for (let at = 0; at < texts.length; at += batchSize) batches.push(texts.slice(at, at + batchSize));
  await pipeline.run(batches[0] ?? []);
  const startedAt = machineMs();
  for (const batch of batches) await pipeline.run(batch);
  process.send?.((machineMs() - startedAt) / texts.length);
}
