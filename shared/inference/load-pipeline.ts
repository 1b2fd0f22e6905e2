import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { whyNoCuda } from "./cuda-provider.ts";
import { type ConcreteDevice, type Device, devicePlan } from "./device-plan.ts";
import { importLibrary, type Library } from "./library.ts";
import { locateModel, type ModelLocation } from "./locate-model.ts";
import { modelError, reasonOf } from "./model-errors.ts";
import { Pipeline, type Runnable, runBatch } from "./pipeline.ts";
import type { Dtype, RunOptions, TextTask } from "./tasks.ts";

/** Which model to load, from where, on which device, in which precision. */
export interface LoadPipelineOptions {
  task: TextTask;
  /** A hub id, or a path that is absolute or begins with `./`. */
  model: string;
  /** `auto` (default): CUDA if it works, else the CPU, with the reason in `why`. A named device must work. */
  device?: Device;
  /** Lets a named device fall back to the CPU as `auto` does. */
  fallback?: boolean;
  /**
   * The precision, which selects the model's file; `auto` or undefined leaves it to the model's config, then
   * fp32.
   */
  dtype?: Dtype;
  /** Threads inside one operator. 1 by default; a session type takes its host's share (`ctx.threads`). */
  threads?: number;
  /** The revision of a model on the hub. */
  revision?: string;
  /** True: a model that is not on this machine may be fetched from the hub. Default false. */
  allowRemote?: boolean;
  /** Folder with models by id. */
  localModelPath?: string;
  /** Where models fetched from the hub are kept. */
  cacheDir?: string;
  /** Texts to run once before the model counts as loaded: the first run allocates. `false` for none. */
  warmUp?: readonly string[] | false;
  /** Options for every run, including the warm-up. */
  runOptions?: RunOptions;
}

/**
 * Loads a model for a task and makes it ready to answer.
 *
 * @example
 * ```ts
 * await using model = await loadPipeline({ task: "feature-extraction", model: "./models/minilm" });
 * const vectors = await model.run(["one text", "another"], { pooling: "mean" });
 * ```
 */
export async function loadPipeline(options: LoadPipelineOptions): Promise<Pipeline> {
  const startedAt = performance.now();
  const { task, model, device = "auto", fallback = false, runOptions = {} } = options;
  const library = await importLibrary();
  const location = locateModel({
    ...options,
    cacheDir: options.cacheDir ?? library.env.cacheDir ?? undefined,
  });
  // `pipeline()` ignores `cache_dir` for the first files it reads; a process has one cache anyway.
  if (location.kind === "hub" && options.cacheDir) library.env.cacheDir = options.cacheDir;
  const residentBefore = process.memoryUsage.rss();
  const { runnable, used, why } = await firstThatWorks(
    library,
    location,
    options,
    devicePlan(device, fallback),
  );
  const grown = process.memoryUsage.rss() - residentBefore;
  return new Pipeline(
    runnable,
    {
      task,
      model,
      device: used,
      why,
      loadMs: performance.now() - startedAt,
      // A second load reuses freed memory, so its growth alone would be too small.
      memoryBytes: Math.max(grown, weightBytes(location)),
      threads: options.threads ?? defaultThreads,
    },
    runOptions,
  );
}

const defaultThreads = 1;

interface Attempt {
  runnable: Runnable;
  used: ConcreteDevice;
  why: string | undefined;
}

async function firstThatWorks(
  library: Library,
  location: ModelLocation,
  options: LoadPipelineOptions,
  plan: readonly ConcreteDevice[],
): Promise<Attempt> {
  const reasons: string[] = [];
  for (const device of plan) {
    const last = device === plan.at(-1);
    const known = device === "cuda" ? whyNoCuda() : undefined;
    try {
      if (known) throw new Error(known);
      const runnable = await loadOn(library, location, options, device);
      return { runnable, used: device, why: reasons.length > 0 ? reasons.join("; ") : undefined };
    } catch (cause) {
      if (cause instanceof library.ModelFileNotFoundError) throw notFound(library, location, options, cause);
      reasons.push(`${device}: ${reasonOf(cause)}`);
      if (last) throw loadFailed(options, device, reasons, cause);
    }
  }
  throw modelError("model_load_failed", `There is no device to load ${options.model} on`);
}

async function loadOn(
  library: Library,
  location: ModelLocation,
  options: LoadPipelineOptions,
  device: ConcreteDevice,
): Promise<Runnable> {
  const { task, dtype, threads = defaultThreads, warmUp = ["warm up"], runOptions = {} } = options;
  const source = location.kind === "folder" ? location.path : location.id;
  const loaded: unknown = await library.pipeline(task, source, {
    device,
    ...(dtype && dtype !== "auto" && { dtype }),
    ...(location.kind === "hub" ? { revision: location.revision } : { local_files_only: true }),
    // Operators run one after the other, so threads between operators would only wait.
    session_options: { intraOpNumThreads: threads, interOpNumThreads: 1 },
  });
  if (!isRunnable(loaded)) throw new Error(`transformers.js returned no pipeline for ${task}`);
  if (warmUp && warmUp.length > 0) {
    await disposeOnFailure(loaded, () => runBatch(loaded, task, warmUp, runOptions));
  }
  return loaded;
}

/** A device may load a model and fail only at its first run; then the memory must be freed. */
async function disposeOnFailure(runnable: Runnable, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (cause) {
    await runnable.dispose();
    throw cause;
  }
}

const isRunnable = (value: unknown): value is Runnable => typeof value === "function" && "dispose" in value;

function notFound(
  library: Library,
  location: ModelLocation,
  { model, dtype }: LoadPipelineOptions,
  cause: Error,
) {
  if (location.kind === "hub") {
    const message = `No model ${model} at ${library.env.remoteHost} (allowRemote is true): ${cause.message}`;
    return modelError("model_not_found", message, { cause });
  }
  const files = onnxFiles(location.path).join(", ") || "none";
  const message = `The model at ${location.path} lacks a file (dtype: ${dtype ?? "not set"}; onnx files there: ${files}): ${cause.message}`;
  return modelError("model_not_found", message, { details: { looked: [location.path], files }, cause });
}

function loadFailed(
  { model, allowRemote = false }: LoadPipelineOptions,
  device: ConcreteDevice,
  reasons: readonly string[],
  cause: unknown,
) {
  const message = `${model} could not be loaded (${reasons.join("; ")})`;
  return device === "cpu"
    ? modelError("model_load_failed", message, { retryable: allowRemote, cause }) // a download may work later
    : modelError("model_device_unavailable", message, { details: { device }, cause });
}

function onnxFiles(folder: string): string[] {
  try {
    return readdirSync(join(folder, "onnx")).filter((file) => file.includes(".onnx"));
  } catch {
    return []; // a missing folder counts as empty
  }
}

/**
 * A folder may hold the same weights at several precisions, each with its data files: the smallest is a safe
 * lower bound.
 */
function weightBytes(location: ModelLocation): number {
  if (location.kind === "hub") return 0;
  const sizes = new Map<string, number>();
  for (const file of onnxFiles(location.path)) {
    const precision = file.replace(/\.onnx.*$/, "");
    sizes.set(precision, (sizes.get(precision) ?? 0) + statSync(join(location.path, "onnx", file)).size);
  }
  return sizes.size === 0 ? 0 : Math.min(...sizes.values());
}
