import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { decode, encode, parseJson } from "../../../shared/bus/index.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const Any = z.unknown();

describe("codec", () => {
  it("gives back what JSON can carry", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!/__proto__|"constructor"/.test(JSON.stringify(value)));
        expect(decode(Any, encode(value))).toEqual({ kind: "ok", value: JSON.parse(JSON.stringify(value)) });
      }),
    );
  });

  it("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (random) => {
        expect(["ok", "invalid"]).toContain(decode(z.strictObject({ a: z.number() }), random).kind);
      }),
    );
  });

  it("refuses depth before it parses", () => {
    for (const deep of ["[".repeat(10_000) + "]".repeat(10_000), '{"a":'.repeat(10_000), "[".repeat(201)]) {
      expect(parseJson(bytes(deep))).toMatchObject({ kind: "invalid", message: /deeper than 200/ });
    }
    expect(parseJson(bytes("[".repeat(200) + "]".repeat(200))).kind).toBe("ok");
    expect(parseJson(bytes(JSON.stringify(["[".repeat(5_000), '\\"[', "{".repeat(5_000)]))).kind).toBe("ok");
  });

  it("refuses size, bad text and bad JSON with a reason", () => {
    expect(parseJson(bytes('"0123456789"'), { maxBytes: 10 })).toMatchObject({
      message: /12 bytes, at most 10/,
    });
    expect(parseJson(Uint8Array.of(0x22, 0xff, 0x22))).toEqual({
      kind: "invalid",
      message: "not UTF-8 text",
    });
    expect(parseJson(bytes("{a:1}"))).toMatchObject({ message: /^not JSON/ });
    expect(parseJson(new Uint8Array(0)).kind).toBe("invalid");
    const named = decode(z.strictObject({ a: z.strictObject({ b: z.number() }) }), encode({ a: { b: "x" } }));
    expect(named).toMatchObject({ kind: "invalid", message: expect.stringMatching(/^a\.b: /) });
  });

  it("lets nothing reach a prototype", () => {
    for (const text of [
      '{"__proto__":{"polluted":1},"a":1}',
      '{"\\u005f_proto__":{"polluted":1},"a":1}',
      '{"constructor":{"prototype":{"polluted":1}},"a":1}',
    ]) {
      const parsed = parseJson(bytes(text));
      if (parsed.kind !== "ok") throw new Error(parsed.message);
      const merged = Object.assign({}, parsed.value);
      expect(merged).toEqual({ a: 1 });
      expect(Object.hasOwn(parsed.value as object, "__proto__")).toBe(false);
      expect(({} as { polluted?: number }).polluted).toBeUndefined();
    }
    // A word users may use.
    expect(parseJson(bytes('{"constructor":"Ferrari"}'))).toEqual({
      kind: "ok",
      value: { constructor: "Ferrari" },
    });
  });
});
