/**
 * Source design S0, "Stateful Sessions for Orchestration Workers": a handler owns the state. `init` loads the model once,
 * every call finds it, `shutdown` releases it, and a worker that dies costs one more `init`.
 */
import { call, defineActivity, defineOrchestration, defineSession, type InitContext } from "holdfast";
import { z } from "zod";

/** The actions of the handlers, in order, for assertions. */
export const journal: string[] = [];

const ModelConfig = z.object({ modelPath: z.string() });
type ModelConfig = z.infer<typeof ModelConfig>;

interface Model {
  readonly name: string;
  classify(text: string): string;
}

function loadModel(name: string): Model {
  journal.push(`load ${name}`);
  return { name, classify: (text) => (text.includes("!") ? "spam" : "ham") };
}

/** `impl SessionHandler for MlClassifierSession`. */
export const mlClassifier = defineSession("ml-classifier", {
  config: ModelConfig,
  idleTimeout: "5m", // fn idle_timeout
  init: (_ctx: InitContext, { modelPath }: ModelConfig): Model => {
    if (modelPath === "missing") throw new Error("no weights at missing"); // "Session Init Failure"
    return loadModel(modelPath);
  },
  calls: {
    Classify: call({ input: z.string(), run: (model: Model, doc) => model.classify(doc) }),
  },
  shutdown: (model) => void journal.push(`unload ${model.name}`),
});

export const embeddingEngine = defineSession("embedding-engine", {
  init: (): { dimensions: number } => {
    journal.push("load tokenizer");
    return { dimensions: 3 };
  },
  calls: {
    Embed: call({
      input: z.string(),
      run: ({ dimensions }: { dimensions: number }, text) =>
        Array.from({ length: dimensions }, () => text.length),
    }),
  },
});

/** "Regular activities (stateless)" beside them. */
export const sendEmail = defineActivity("SendEmail", { run: (_ctx, to: string) => `sent to ${to}` });

/** The motivating example: the model is loaded once for all documents. */
export const classifyDocs = defineOrchestration("s0-classify-docs", {
  input: z.object({ docs: z.array(z.string()), modelPath: z.string().default("model-path") }),
  async run(ctx, { docs, modelPath }) {
    const session = await ctx.openSession(mlClassifier, { config: { modelPath }, onLost: "reclaim" });
    const results: string[] = [];
    for (const doc of docs) results.push(await session.Classify(doc));
    await session.close();
    return results;
  },
});

/** "Parallel sessions for different models". */
export const multiModelPipeline = defineOrchestration("s0-multi-model-pipeline", {
  input: z.string(),
  async run(ctx, text) {
    const classifier = await ctx.openSession(mlClassifier, { config: { modelPath: "model-path" } });
    const embedder = await ctx.openSession(embeddingEngine);
    const [label, embedding] = await Promise.all([classifier.Classify(text), embedder.Embed(text)]);
    await classifier.close();
    await embedder.close();
    return `label=${label}, embedding_dim=${embedding.length}`;
  },
});

/** "Orchestration Failure with Open Session": the code does not close it, and it is closed all the same. */
export const failsWithOpenSession = defineOrchestration("s0-fails-with-open-session", {
  async run(ctx) {
    const session = await ctx.openSession(mlClassifier, { config: { modelPath: "left-open" } });
    await session.Classify("a");
    throw new Error("the orchestration failed");
  },
});
