import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { heldOutCount, loadMails } from "../../examples/mails/mails.ts";
import { askForBlobs } from "../../services/worker/hosts/index.ts";
import type { CallContext, InitContext } from "../../shared/definitions/index.ts";
import {
  type LoadPipelineOptions,
  loadPipeline,
  type Pipeline,
  pipelineSession,
  textModel,
} from "../../shared/inference/index.ts";

const localModelPath = fileURLToPath(new URL("../../examples/models", import.meta.url));
const spam: LoadPipelineOptions = {
  task: "text-classification",
  model: "spam-use",
  localModelPath,
  device: "cpu",
};
const Labels = z.array(z.object({ label: z.enum(["ham", "spam"]), score: z.number().min(0).max(1) }));

describe("the model in the repository", () => {
  let classifier: Pipeline;
  beforeAll(async () => {
    classifier = await loadPipeline(spam);
  });
  afterAll(() => classifier.dispose());

  test("tells spam from ham in mails it never saw", async () => {
    const mails = loadMails().slice(0, 300);
    expect(heldOutCount).toBeGreaterThan(mails.length);
    const labels = Labels.parse(await classifier.run(mails.map((mail) => mail.text)));
    const right = mails.filter((mail, i) => mail.label === labels[i]?.label).length;
    expect(right / mails.length).toBeGreaterThanOrEqual(0.95);
  });

  test("answers alike alone and in a batch of texts of other lengths", async () => {
    const texts = ["win a prize", loadMails()[0]?.text ?? "", "", "ok"];
    const together = Labels.parse(await classifier.run(texts));
    for (const [i, text] of texts.entries()) {
      const [alone] = Labels.parse(await classifier.run([text]));
      expect(together[i]?.label).toBe(alone?.label);
      expect(together[i]?.score).toBeCloseTo(alone?.score ?? 0, 3);
    }
  });

  test("knows what it is", () => {
    expect(classifier.device).toBe("cpu");
    expect(classifier.why).toBeUndefined();
    expect(classifier.loadMs).toBeGreaterThan(0);
    expect(classifier.memoryBytes).toBeGreaterThan(7_000_000);
  });
});

describe("where a model is looked for", () => {
  test("a missing model names the path and the hub setting", async () => {
    await expect(loadPipeline({ ...spam, model: "owner/absent" })).rejects.toMatchObject({
      code: "model_not_found",
      retryable: false,
      message: expect.stringMatching(
        /looked at .*examples\/models\/owner\/absent and .*allowRemote is false/,
      ),
    });
  });

  test("a missing precision names those that are there", async () => {
    await expect(loadPipeline({ ...spam, dtype: "fp16" })).rejects.toMatchObject({
      code: "model_not_found",
      message: expect.stringMatching(/dtype: fp16; onnx files there: model_quantized\.onnx/),
    });
  });

  test("a path works without a models folder", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-model-"));
    try {
      cpSync(join(localModelPath, "spam-use"), folder, { recursive: true });
      await using model = await loadPipeline({ task: "text-classification", model: folder, device: "cpu" });
      expect(await model.run(["hello"])).toHaveLength(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

// On a machine with a working GPU these three would rightly end otherwise.
describe.runIf(process.env.HOLDFAST_TEST_GPU === undefined)("without a GPU", () => {
  test("auto falls back to the CPU and says why", async () => {
    await using model = await loadPipeline({ ...spam, device: "auto" });
    expect(model.device).toBe("cpu");
    expect(model.why).toMatch(/^cuda: .+/);
  });

  test("a named device fails", async () => {
    await expect(loadPipeline({ ...spam, device: "cuda" })).rejects.toMatchObject({
      code: "model_device_unavailable",
      message: expect.stringMatching(/spam-use could not be loaded \(cuda: /),
    });
  });

  test("a named device falls back when that is allowed", async () => {
    await using model = await loadPipeline({ ...spam, device: "cuda", fallback: true });
    expect(model.device).toBe("cpu");
    expect(model.why).toMatch(/^cuda: /);
  });
});

describe("as a session type", () => {
  const { task: _, ...load } = spam;
  const reported: object[] = [];
  const warned: string[] = [];
  const init = (signal: AbortSignal = new AbortController().signal): InitContext => ({
    session: {
      id: "s",
      type: "t",
      epoch: 1,
      attachment: 1,
      workerId: "w",
      host: "h",
      resourceId: "r",
      metadata: {},
      setMetadata: () => undefined,
      blobs: askForBlobs(() => Promise.resolve(undefined)),
      abort: () => undefined,
    },
    signal,
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: (message) => warned.push(message),
      error: () => undefined,
    },
    threads: 2,
    reportModel: (model) => reported.push(model),
  });

  /** The engine calls it so: a batch of inputs, the state, and a context the model does not look at. */
  const run = (call: { run: unknown }, state: unknown, input: unknown): Promise<unknown> => {
    const context: Partial<CallContext> = {};
    if (typeof call.run !== "function") throw new Error("not a call");
    return call.run(state, input, context);
  };

  test("loads, reports, answers, shows itself, and is freed", async () => {
    const type = textModel(load);
    const state = await type.init(init(), {});
    expect(reported.at(-1)).toMatchObject({ name: "spam-use", device: "cpu", loadMs: expect.any(Number) });
    expect(warned).toEqual([]);
    const labels = Labels.parse(await run(type.calls.classify, state, ["win a prize", "hello"]));
    expect(labels).toHaveLength(2);
    expect(type.snapshot?.(state)).toMatchObject({ model: "spam-use", device: "cpu", texts: 2, batches: 1 });
    expect(type.snapshot?.(state), "the share of its host").toMatchObject({ threads: 2 });
    await type.shutdown?.(state, init());
    await expect(run(type.calls.classify, state, ["late"])).rejects.toMatchObject({ code: "model_disposed" });
  });

  test("computes with as many threads as its type says", async () => {
    const type = textModel({ ...load, threads: 1 });
    const state = await type.init(init(), {});
    expect(type.snapshot?.(state)).toMatchObject({ threads: 1 });
    await type.shutdown?.(state, init());
  });

  test("takes the model from the config, and single calls without a batch", async () => {
    const { model: _model, ...folder } = load;
    const type = textModel({ ...folder, batch: false });
    const state = await type.init(init(), { model: "spam-use" });
    const mail = "Re: [PATCH] fix the build on Debian . Hi, I rebased the branch and the tests pass now";
    expect(await run(type.calls.classify, state, mail)).toMatchObject({ label: "ham" });
    await type.shutdown?.(state, init());
  });

  test("a result of another shape fails its text alone", async () => {
    const type = pipelineSession("text-classification", { ...load, runOptions: { top_k: 2 } });
    const state = await type.init(init(), {});
    const [row] = z.array(z.instanceof(Error)).parse(await run(type.calls.infer, state, ["hello"]));
    expect(row).toMatchObject({
      code: "model_run_failed",
      message: expect.stringMatching(/spam-use returned/),
    });
    await type.shutdown?.(state, init());
  });

  test("a session given up while loading keeps nothing", async () => {
    const reason = new Error("given up");
    await expect(textModel(load).init(init(AbortSignal.abort(reason)), {})).rejects.toBe(reason);
  });
});

describe("disposing", () => {
  test("twice is once, and a disposed model says so", async () => {
    const model = await loadPipeline(spam);
    await model.dispose();
    await model.dispose();
    await expect(model.run(["hello"])).rejects.toMatchObject({ code: "model_disposed" });
  });

  test("a model can be loaded again", async () => {
    for (let load = 0; load < 3; load++) {
      await using model = await loadPipeline(spam);
      expect(await model.run(["hello"])).toHaveLength(1);
    }
  });
});
