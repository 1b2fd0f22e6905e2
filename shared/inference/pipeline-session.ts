/** Ready session types: a model that stays loaded for as long as the session lives. */
import { z } from "zod";
import {
  type BatchOptions,
  type Call,
  call,
  defineSession,
  type InitContext,
  type SessionTypeOptions,
} from "../definitions/index.ts";
import { type LoadPipelineOptions, loadPipeline } from "./load-pipeline.ts";
import { modelIdPattern } from "./locate-model.ts";
import { modelError } from "./model-errors.ts";
import type { Pipeline } from "./pipeline.ts";
import { type TaskOutputs, taskDefaults, taskOutputs } from "./task-outputs.ts";
import type { TextTask } from "./tasks.ts";

/** Options of a session type that holds a model: its model, its batches, its requirements. */
export interface ModelSessionOptions extends Omit<LoadPipelineOptions, "task" | "model"> {
  /** The name of the session type. Default: the task. */
  name?: string;
  /** Id or path. The opener of a session may name another id in its config, and must if this is undefined. */
  model?: string;
  /** Calls that come together run as one batch. `false`: each alone. */
  batch?: BatchOptions | false;
  /** Where and how the session lives. The default `isolation` is `process`, see the README. */
  session?: SessionTypeOptions;
}

/** The state of a session: the loaded model and its counters. */
export interface LoadedModel {
  readonly pipeline: Pipeline;
  texts: number;
  batches: number;
}

/** On a CPU larger batches measured slower; a GPU will want more. */
const defaultBatch: BatchOptions = { maxSize: 8, maxDelay: "4ms" };

/**
 * The config comes from outside, so it may name ids only (MODEL-1): the worker decides which folders hold
 * models.
 */
const Config = z.object({ model: z.string().regex(modelIdPattern).optional() }).default({});

/**
 * A session type over a task of transformers.js, with one call: `infer(text)`.
 *
 * @example
 * ```ts
 * export const embedder = pipelineSession("feature-extraction", { name: "embedder", model: "./models/minilm" });
 * // in an orchestration:
 * await using session = await ctx.openSession(embedder);
 * const vector = await session.infer("one text");
 * ```
 */
export function pipelineSession<Task extends TextTask>(task: Task, options: ModelSessionOptions = {}) {
  const infer = modelCall(taskOutputs[task], options.batch);
  return defineModelSession(task, { infer }, { name: task, ...options });
}

/**
 * A session type that labels texts: `classify(text)` gives `{ label, score }`.
 *
 * @example
 * ```ts
 * export const spam = textModel({ name: "spam", model: "./models/spam", session: { maxPerWorker: 2 } });
 * ```
 */
export function textModel(options: ModelSessionOptions = {}) {
  const classify = modelCall(taskOutputs["text-classification"], options.batch);
  return defineModelSession("text-classification", { classify }, { name: "text-model", ...options });
}

function defineModelSession<Calls extends Record<string, Call<LoadedModel, string, TaskOutputs[TextTask]>>>(
  task: TextTask,
  calls: Calls,
  options: ModelSessionOptions & { name: string },
) {
  const { name, model: named, batch: _batch, session, ...load } = options;
  return defineSession(name, {
    isolation: "process",
    ...session,
    config: Config,
    async init(ctx: InitContext, config: z.output<typeof Config>): Promise<LoadedModel> {
      const model = config.model ?? named;
      if (model === undefined) {
        const advice = "name one in the definition or in the session's config";
        throw modelError("model_name_refused", `The session type ${name} has no model: ${advice}`);
      }
      const runOptions = { ...taskDefaults[task], ...load.runOptions };
      return {
        pipeline: await loadAndReport(ctx, { threads: ctx.threads, ...load, task, model, runOptions }),
        texts: 0,
        batches: 0,
      };
    },
    calls,
    snapshot: ({ pipeline, texts, batches }) => ({ ...pipeline.facts, texts, batches }),
    shutdown: ({ pipeline }) => pipeline.dispose(),
  });
}

async function loadAndReport(ctx: InitContext, options: LoadPipelineOptions): Promise<Pipeline> {
  const pipeline = await loadPipeline(options);
  // Loading cannot be interrupted; a session that was given up meanwhile must not keep the memory.
  if (ctx.signal.aborted) {
    await pipeline.dispose();
    throw ctx.signal.reason;
  }
  const { model, device, loadMs, memoryBytes, why } = pipeline.facts;
  ctx.reportModel({ name: model, device, loadMs, bytes: memoryBytes });
  if (why) ctx.log.warn("the model runs on another device than requested", { model, device, why });
  return pipeline;
}

function modelCall<Output>(
  output: z.ZodType<Output>,
  batch: BatchOptions | false = defaultBatch,
): Call<LoadedModel, string, Output> {
  const input = z.string();
  const runAll = async (state: LoadedModel, texts: readonly string[]): Promise<(Output | Error)[]> => {
    state.batches += 1;
    state.texts += texts.length;
    const rows = await state.pipeline.run(texts);
    return rows.map((row) => parsed(output, row, state.pipeline));
  };
  if (batch) {
    return call<LoadedModel, string, Output, typeof input>({ input, batch, run: runAll });
  }
  return call<LoadedModel, string, Output, typeof input>({
    input,
    async run(state, text) {
      const [row] = await runAll(state, [text]);
      if (row instanceof Error) throw row;
      if (row === undefined) throw modelError("model_run_failed", "The model returned no result for a text");
      return row;
    },
  });
}

/** A row of another shape fails its own text, not the others of the batch. */
function parsed<Output>(output: z.ZodType<Output>, row: unknown, { facts }: Pipeline): Output | Error {
  const result = output.safeParse(row);
  if (result.success) return result.data;
  const message = `${facts.model} returned a result that does not fit the task ${facts.task}: ${z.prettifyError(result.error)}`;
  return modelError("model_run_failed", message, { cause: result.error });
}
