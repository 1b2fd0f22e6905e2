import { describe, expect, it } from "vitest";
import { maxValueBytes } from "../../../shared/errors/index.ts";
import { LargeValue, toPayload } from "../../../shared/replay/run/to-payload.ts";

describe("a value of the code", () => {
  it.each([
    ["nothing", undefined, undefined],
    ["a text", "text", "text"],
    ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["not a number", Number.NaN, null],
    ["an object", { a: [1, undefined], b: undefined }, { a: [1, null] }],
  ])("is what JSON makes of it: %s", (_what, value, json) => {
    expect(toPayload(value).payload).toEqual({ json });
  });

  it("is kept as text where it is large, and is what it was wherever it is written", () => {
    const value = { text: "ü".repeat(200_000), list: [1, undefined] };
    const { payload, bytes } = toPayload({ ...value, more: "x".repeat(100_000) });
    expect(bytes).toBeGreaterThan(500_000);
    expect("json" in payload && payload.json).toBeInstanceOf(LargeValue);
    expect(JSON.parse(JSON.stringify(payload))).toEqual({
      json: { text: value.text, list: [1, null], more: "x".repeat(100_000) },
    });
  });

  it("is refused beyond the limit", () => {
    expect(() => toPayload("x".repeat(maxValueBytes))).toThrow(
      expect.objectContaining({ code: "payload_too_large", message: expect.stringContaining("134217728") }),
    );
  });

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  it.each([
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a big integer", 1n],
    ["a cycle", cycle],
    ["a function inside", { a: [{ f: () => 1 }] }],
  ])("is refused where JSON has no form for it: %s", (_what, value) => {
    expect(() => toPayload(value)).toThrow(expect.objectContaining({ code: "not_serialisable" }));
  });
});
