import { describe, expect, it } from "vitest";
import { toPayload } from "../../../shared/replay/to-payload.ts";

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

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  it.each([
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a big integer", 1n],
    ["a cycle", cycle],
  ])("is refused where JSON has no form for it: %s", (_what, value) => {
    expect(() => toPayload(value)).toThrow(expect.objectContaining({ code: "not_serialisable" }));
  });
});
