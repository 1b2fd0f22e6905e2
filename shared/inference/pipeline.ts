import type { ConcreteDevice } from "./device-plan.ts";
import { modelError, reasonOf } from "./model-errors.ts";
import { type RunOptions, type TextTask, taskArguments } from "./tasks.ts";

/** The part of a transformers.js pipeline that is used here. */
export interface Runnable {
  (...args: unknown[]): Promise<unknown>;
  dispose(): Promise<unknown>;
}

/** The part of a tensor that is used here; some tasks return tensors. */
interface TensorLike {
  tolist(): unknown;
  dispose(): void;
}

/** Facts about a loaded model: its device, its precision, how long loading took. */
export interface PipelineFacts {
  task: TextTask;
  model: string;
  device: ConcreteDevice;
  /** Why the model is not on a better device; undefined if it is on the requested one. */
  why: string | undefined;
  /** Time from the request to the first answer. */
  loadMs: number;
  /**
   * Growth of the process while loading, at least the size of the weights. An estimate, for placement and
   * metrics.
   */
  memoryBytes: number;
  /** Threads inside one operator. */
  threads: number;
}

/**
 * A loaded model.
 *
 * onnxruntime computes on the thread that calls it, so `run` blocks the event loop it is awaited on: a
 * session with a model belongs in a `thread` or a `process`.
 */
export class Pipeline implements AsyncDisposable {
  readonly facts: PipelineFacts;
  readonly #runnable: Runnable;
  readonly #defaults: RunOptions;
  readonly #running = new Set<Promise<unknown>>();
  #disposed: Promise<void> | undefined;

  /** @internal Use {@link loadPipeline}. */
  constructor(runnable: Runnable, facts: PipelineFacts, defaults: RunOptions) {
    this.#runnable = runnable;
    this.facts = facts;
    this.#defaults = defaults;
  }

  get device(): ConcreteDevice {
    return this.facts.device;
  }
  get why(): string | undefined {
    return this.facts.why;
  }
  get loadMs(): number {
    return this.facts.loadMs;
  }
  get memoryBytes(): number {
    return this.facts.memoryBytes;
  }

  /** One result per text, in order, as plain data; all texts go through the model as one batch. */
  async run(texts: readonly string[], options: RunOptions = {}): Promise<unknown[]> {
    if (this.#disposed) throw modelError("model_disposed", `The model ${this.facts.model} was disposed`);
    if (texts.length === 0) return [];
    const running = runBatch(this.#runnable, this.facts.task, texts, { ...this.#defaults, ...options });
    this.#running.add(running);
    try {
      return await running;
    } catch (cause) {
      throw modelError("model_run_failed", `${this.facts.model} on ${this.device}: ${reasonOf(cause)}`, {
        retryable: true,
        cause,
      });
    } finally {
      this.#running.delete(running);
    }
  }

  /** Waits for running calls, then frees the model. A second call has no effect. */
  dispose(): Promise<void> {
    this.#disposed ??= Promise.allSettled(this.#running).then(async () => {
      await this.#runnable.dispose();
    });
    return this.#disposed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

export async function runBatch(
  runnable: Runnable,
  task: TextTask,
  texts: readonly string[],
  options: RunOptions,
): Promise<unknown[]> {
  const output = await runnable([...texts], ...taskArguments(task, options));
  const rows = isTensor(output) ? listAndDispose(output) : output;
  if (!Array.isArray(rows) || rows.length !== texts.length) {
    throw new Error(
      `${task} gave ${Array.isArray(rows) ? rows.length : typeof rows} results for ${texts.length} texts`,
    );
  }
  return rows;
}

function listAndDispose(tensor: TensorLike): unknown {
  const list = tensor.tolist();
  tensor.dispose();
  return list;
}

const isTensor = (value: unknown): value is TensorLike =>
  typeof value === "object" && value !== null && "tolist" in value && "dispose" in value;
