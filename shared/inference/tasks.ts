/**
 * The tasks that take texts, with one result for each text. Tasks that take images or sound are left out on
 * purpose: the library accepts a path or an address for them, and a call's input must not be able to open
 * files.
 */
export const textTasks = [
  "text-classification",
  "token-classification",
  "zero-shot-classification",
  "fill-mask",
  "feature-extraction",
  "summarization",
  "translation",
  "text2text-generation",
  "text-generation",
] as const;
/** A task that `pipelineSession` and `loadPipeline` serve. */
export type TextTask = (typeof textTasks)[number];

/** Options of a task, as transformers.js names them: `top_k`, `pooling`, `max_new_tokens`, … */
export type RunOptions = Readonly<Record<string, unknown>>;

/**
 * Zero-shot classification is the one text task with a second argument; it is an option here like the others.
 */
export function taskArguments(task: TextTask, options: RunOptions): unknown[] {
  if (task !== "zero-shot-classification") return [options];
  const { candidate_labels: labels, ...rest } = options;
  return [labels, rest];
}

/** Every precision that `dtype` may name. */
export const dtypes = ["auto", "fp32", "fp16", "q8", "int8", "uint8", "q4", "q4f16", "bnb4"] as const;
/** The precision of a model's weights. */
export type Dtype = (typeof dtypes)[number];
