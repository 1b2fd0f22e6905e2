import { expect, test } from "vitest";
import { whyNoCuda } from "../../../shared/inference/cuda-provider.ts";
import { devicePlan } from "../../../shared/inference/device-plan.ts";
import { importLibrary } from "../../../shared/inference/library.ts";

test("auto tries CUDA, then the CPU", () => {
  expect(devicePlan("auto", false)).toEqual(["cuda", "cpu"]);
});

test("a named device is the only one, unless a fallback is allowed", () => {
  expect(devicePlan("cuda", false)).toEqual(["cuda"]);
  expect(devicePlan("cuda", true)).toEqual(["cuda", "cpu"]);
  expect(devicePlan("cpu", true)).toEqual(["cpu"]);
});

test("says on which systems there is no CUDA", () => {
  expect(whyNoCuda("darwin", "arm64")).toMatch(/linux x64 only, this is darwin arm64/);
});

test("names the package when it is not installed", async () => {
  const absent = Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
  await expect(importLibrary(() => Promise.reject(absent))).rejects.toMatchObject({
    code: "model_package_missing",
    message: expect.stringMatching(/npm install @huggingface\/transformers/),
    cause: absent,
  });
});

test("says why an installed package cannot be loaded", async () => {
  const broken = importLibrary(() => Promise.reject(new Error("wrong ELF class")));
  await expect(broken).rejects.toThrow(/installed but cannot be loaded: wrong ELF class/);
});
