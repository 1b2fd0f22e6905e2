/** Documents sorted by one model that stays loaded. Run it: npx holdfast dev --app examples/classify/app.ts */
import { fileURLToPath } from "node:url";
import { defineActivity, defineOrchestration } from "holdfast";
import { loadPipeline, textModel } from "holdfast/inference";
import { z } from "zod";

const model = {
  model: "spam-use",
  localModelPath: fileURLToPath(new URL("../models", import.meta.url)),
  device: "cpu",
} as const;

const Label = z.object({ label: z.string(), score: z.number() });
const Labelled = z.object({
  labels: z.array(Label),
  /** From the first call to the last answer. */
  ms: z.number(),
});

/** Loads the model once, in a process of its own, and answers `classify(text)` for as long as it is open. */
export const classifier = textModel({
  ...model,
  name: "classifier",
  batch: { maxSize: 8, maxDelay: "2ms" },
  session: { leaseTtl: "3s", idleTimeout: "1m" },
});

/**
 * All documents through one session, so many at once. A worker that dies takes the model with it: another one loads it
 * (`reclaim`), the calls that were open are repeated there, and this code does not notice.
 */
export const classifyDocuments = defineOrchestration("classify-documents", {
  input: z.object({ documents: z.array(z.string()), atOnce: z.int().positive().default(16) }),
  output: Labelled,
  async run(ctx, { documents, atOnce }) {
    await using session = await ctx.openSession(classifier, { onLost: "reclaim" });
    const since = ctx.now();
    const labels: z.infer<typeof Label>[] = [];
    while (labels.length < documents.length) {
      const some = documents.slice(labels.length, labels.length + atOnce);
      labels.push(...(await Promise.all(some.map((text) => session.classify(text)))));
      ctx.setStatus({ done: labels.length, of: documents.length });
    }
    return { labels, ms: ctx.now() - since };
  },
});

/** The way without sessions: each call loads the model, asks it and throws it away. */
export const classifyOnce = defineActivity("classify-once", {
  input: z.string(),
  output: Label,
  async run(_ctx, text) {
    await using pipeline = await loadPipeline({ ...model, task: "text-classification" });
    const [label] = await pipeline.run([text]);
    return Label.parse(label);
  },
});

/** The same documents without a session, for comparison. */
export const classifyCold = defineOrchestration("classify-cold", {
  input: z.object({ documents: z.array(z.string()) }),
  output: Labelled,
  async run(ctx, { documents }) {
    const since = ctx.now();
    const labels: z.infer<typeof Label>[] = [];
    for (const text of documents) {
      labels.push(await ctx.run(classifyOnce, text));
      ctx.setStatus({ done: labels.length, of: documents.length });
    }
    return { labels, ms: ctx.now() - since };
  },
});
