import { z } from "zod";
import type { TextTask } from "./tasks.ts";

const Label = z.object({ label: z.string(), score: z.number() });
const Entity = z.looseObject({ entity: z.string(), score: z.number(), word: z.string() });
const Filled = z.looseObject({ score: z.number(), token_str: z.string(), sequence: z.string() });

/**
 * The result of each task for one text. `top_k` and the like change the shape: for those, define a session
 * over `loadPipeline`.
 */
const schemas = {
  "text-classification": Label,
  "token-classification": z.array(Entity),
  "zero-shot-classification": z.looseObject({ labels: z.array(z.string()), scores: z.array(z.number()) }),
  "fill-mask": z.array(Filled),
  "feature-extraction": z.array(z.number()),
  summarization: z.looseObject({ summary_text: z.string() }),
  translation: z.looseObject({ translation_text: z.string() }),
  "text2text-generation": z.looseObject({ generated_text: z.string() }),
  "text-generation": z.array(z.looseObject({ generated_text: z.unknown() })),
} satisfies Record<TextTask, z.ZodType>;

/** The result type of each text task for one input. */
export type TaskOutputs = { [Task in TextTask]: z.output<(typeof schemas)[Task]> };

export const taskOutputs: { [Task in TextTask]: z.ZodType<TaskOutputs[Task]> } = schemas;

/** Without pooling an embedding would be one vector per token. */
export const taskDefaults: Partial<Record<TextTask, Readonly<Record<string, unknown>>>> = {
  "feature-extraction": { pooling: "mean", normalize: true },
};
