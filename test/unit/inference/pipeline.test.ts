import { describe, expect, test, vi } from "vitest";
import { Pipeline, type PipelineFacts, type Runnable } from "../../../shared/inference/pipeline.ts";

const facts: PipelineFacts = {
  task: "text-classification",
  model: "m",
  device: "cpu",
  why: undefined,
  loadMs: 1,
  memoryBytes: 1,
  threads: 1,
};

function pipelineOver(run: (...args: unknown[]) => Promise<unknown>, task = facts.task, defaults = {}) {
  const dispose = vi.fn(async () => undefined);
  const runnable: Runnable = Object.assign(run, { dispose });
  return { pipeline: new Pipeline(runnable, { ...facts, task }, defaults), dispose };
}

describe("Pipeline", () => {
  test("no texts, no run", async () => {
    const run = vi.fn();
    expect(await pipelineOver(run).pipeline.run([])).toEqual([]);
    expect(run).not.toHaveBeenCalled();
  });

  test("options of the call win over those of the pipeline", async () => {
    const run = vi.fn(async () => ["x"]);
    await pipelineOver(run, "text-classification", { top_k: 1, a: 1 }).pipeline.run(["t"], { top_k: 2 });
    expect(run).toHaveBeenCalledWith(["t"], { top_k: 2, a: 1 });
  });

  test("zero-shot labels are an option like the others", async () => {
    const run = vi.fn(async () => ["x"]);
    const { pipeline } = pipelineOver(run, "zero-shot-classification");
    await pipeline.run(["t"], { candidate_labels: ["a"], multi_label: true });
    expect(run).toHaveBeenCalledWith(["t"], ["a"], { multi_label: true });
  });

  test("a tensor becomes plain rows and is freed", async () => {
    const dispose = vi.fn();
    const { pipeline } = pipelineOver(async () => ({ tolist: () => [[1, 2]], dispose }));
    expect(await pipeline.run(["t"])).toEqual([[1, 2]]);
    expect(dispose).toHaveBeenCalledOnce();
  });

  test("refuses results that cannot be given back one by one", async () => {
    const { pipeline } = pipelineOver(async () => ["one"]);
    await expect(pipeline.run(["a", "b"])).rejects.toMatchObject({
      code: "model_run_failed",
      message: expect.stringMatching(/gave 1 results for 2 texts/),
    });
  });

  test("a failed run names the model and the device and may be retried", async () => {
    const { pipeline } = pipelineOver(() => Promise.reject(new Error("out of memory")));
    await expect(pipeline.run(["a"])).rejects.toMatchObject({
      message: "m on cpu: out of memory",
      retryable: true,
    });
  });

  test("disposing waits for what runs, happens once, and ends the pipeline", async () => {
    let finish = (_: unknown): void => undefined;
    const { pipeline, dispose } = pipelineOver(() => new Promise((resolve) => (finish = resolve)));
    const answer = pipeline.run(["a"]);
    const disposed = Promise.all([pipeline.dispose(), pipeline.dispose()]);
    await expect(pipeline.run(["b"])).rejects.toMatchObject({ code: "model_disposed" });
    expect(dispose).not.toHaveBeenCalled();
    finish(["done"]);
    expect(await answer).toEqual(["done"]);
    await disposed;
    expect(dispose).toHaveBeenCalledOnce();
  });
});
