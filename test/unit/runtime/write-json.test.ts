import { describe, expect, it } from "vitest";
import { writeJson } from "../../../shared/runtime/index.ts";

const refused = (value: unknown): string => {
  try {
    return `written: ${writeJson(value)}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code}: ${message.replace("the value cannot be turned into JSON: ", "")}`;
  }
};

class Handler {
  readonly name = "h";
  act(): number {
    return 1;
  }
}

describe("what JSON has a word for is written as JSON writes it", () => {
  it.each([
    ["text"],
    [null],
    [[1, undefined, Number.NaN]],
    [{ a: undefined, b: { c: [new Date(0)] } }],
    [new Handler()],
    [{ toJSON: () => ({ told: true }), act: () => 1 }],
    [Object.create(null, { hidden: { value: () => 1, enumerable: false } })],
    [{ [Symbol("key")]: () => 1 }],
  ])("%j", (value) => expect(writeJson(value)).toBe(JSON.stringify(value)));
});

describe("what it has none for is refused by its place", () => {
  const cycle: Record<string, unknown> = { in: {} };
  cycle.in = { of: cycle };
  it.each([
    [() => 1, "a function has no JSON form"],
    [Symbol("s"), "a symbol has no JSON form"],
    [1n, "it is a bigint"],
    [{ f: () => 1 }, "f is a function"],
    [[[() => 1]], "[0][0] is a function"],
    [{ a: [1, "x", null, { "b c": Symbol("s") }] }, "a[3].b c is a symbol"],
    [{ deep: [{ n: 1n }] }, "deep[0].n is a bigint"],
    [new Map([[1, 2]]), "it is a Map"],
    [{ seen: [new Set([1])] }, "seen[0] is a Set"],
    [{ later: Promise.resolve(1) }, "later is a Promise"],
    [{ by: /x/ }, "by is a RegExp"],
    [[new ArrayBuffer(1)], "[0] is an ArrayBuffer"],
  ])("%#", (value, why) => expect(refused(value)).toBe(`not_serialisable: ${why}`));

  it("a cycle, in the words of JSON", () => expect(refused(cycle)).toMatch(/not_serialisable: .*circular/s));
  it("a cycle with a bigint inside", () =>
    expect(refused({ ...cycle, n: 1n })).toMatch(/circular|n is a bigint/));
  it("what cannot be read", () =>
    expect(
      refused({
        get x() {
          throw new Error("not for you");
        },
      }),
    ).toBe("not_serialisable: not for you"));
});
