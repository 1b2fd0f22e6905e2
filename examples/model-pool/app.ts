/** Many orchestrations, few models: all share one pool. Run it: npx holdfast dev --app examples/model-pool/app.ts */
import { fileURLToPath } from "node:url";
import { defineOrchestration } from "holdfast";
import { textModel } from "holdfast/inference";
import { z } from "zod";

const Label = z.object({ label: z.string(), score: z.number() });
const Labels = z.array(Label);

/** Each member of the pool is one of these, in a process of its own on any worker. */
export const pooledClassifier = textModel({
  name: "pooled-classifier",
  model: "spam-use",
  localModelPath: fileURLToPath(new URL("../models", import.meta.url)),
  device: "cpu",
  batch: { maxSize: 8, maxDelay: "2ms" },
  session: { leaseTtl: "3s", idleTimeout: "30s" },
});

/** Two models are loaded when the pool is first used; it grows to four while calls wait. */
const size = { min: 2, max: 4, linger: "10s" } as const;

/** One of many users of the models, which they share without knowing each other. */
export const sortPart = defineOrchestration("sort-part", {
  input: z.object({ documents: z.array(z.string()) }),
  output: Labels,
  async run(ctx, { documents }) {
    await using pool = await ctx.usePool(pooledClassifier, size);
    return await Promise.all(documents.map((text) => pool.classify(text)));
  },
});

/** Fans out: a child for every part, all at once. */
export const sortAll = defineOrchestration("sort-all", {
  input: z.object({ documents: z.array(z.string()), parts: z.int().min(1).max(100).default(8) }),
  output: Labels,
  async run(ctx, { documents, parts }) {
    // Kept from the first part to the last: the models stay, also between two children.
    await using _pool = await ctx.usePool(pooledClassifier, size);
    const each = Math.ceil(documents.length / parts);
    const children: Promise<z.infer<typeof Labels>>[] = [];
    for (let at = 0; at < documents.length; at += each) {
      children.push(ctx.child(sortPart, { documents: documents.slice(at, at + each) }));
    }
    return (await Promise.all(children)).flat();
  },
});
