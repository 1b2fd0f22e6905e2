import { describe, expect, expectTypeOf, test } from "vitest";
import { askForBlobs } from "../../../services/worker/hosts/index.ts";
import type { Call, CallsOf, ConfigOf, InitContext } from "../../../shared/definitions/index.ts";
import { validate } from "../../../shared/definitions/index.ts";
import { type LoadedModel, pipelineSession, textModel } from "../../../shared/inference/index.ts";

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const ctx: InitContext = {
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
  signal: new AbortController().signal,
  log: quiet,
  threads: 1,
  reportModel: () => undefined,
};

describe("model sessions", () => {
  test("the types of input and output follow from the task", () => {
    const embedder = pipelineSession("feature-extraction", { model: "m" });
    expectTypeOf<CallsOf<typeof embedder>["infer"]>().toEqualTypeOf<Call<LoadedModel, string, number[]>>();
    type Label = { label: string; score: number };
    const classifier = textModel({ model: "m" });
    expectTypeOf<CallsOf<typeof classifier>["classify"]>().toEqualTypeOf<Call<LoadedModel, string, Label>>();
    expectTypeOf<ConfigOf<typeof classifier>>().toEqualTypeOf<{ model?: string | undefined } | undefined>();
  });

  test("are named after the task, run in a process and batch, unless told otherwise", () => {
    const plain = pipelineSession("text-classification");
    expect(plain.name).toBe("text-classification");
    expect(plain.options.isolation).toBe("process");
    expect(plain.calls.infer.batch).toEqual({ maxSize: 8, maxDelay: "4ms" });
    const told = textModel({
      name: "mails",
      batch: false,
      session: { isolation: "thread", idleTimeout: "5m" },
    });
    expect(told.name).toBe("mails");
    expect(told.options).toEqual({ isolation: "thread", idleTimeout: "5m" });
    expect(told.calls.classify.batch).toBeUndefined();
  });

  test("a config may be left out, and names ids only", () => {
    const { config } = textModel({ model: "m" });
    const check = (value: unknown) => validate(config, value, "invalid_config", "config");
    expect(check(undefined)).toEqual({});
    expect(check({ model: "owner/name" })).toEqual({ model: "owner/name" });
    for (const model of ["/etc", "./m", "../m", "a/b/c", ""]) {
      expect(() => check({ model })).toThrow(expect.objectContaining({ code: "invalid_config" }));
    }
  });

  test("without any model the session says so", async () => {
    await expect(async () => textModel().init(ctx, {})).rejects.toThrow(
      /session type text-model has no model: name one/,
    );
  });
});
