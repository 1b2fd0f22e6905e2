import { describe, expect, it } from "vitest";
import { Payload } from "../../../schemas/index.ts";
import { type BlobStore, decode, encode, Payloads, parseJson } from "../../../shared/bus/index.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";

const blobs = (): BlobStore => new MemoryBroker().connect().blobs;
const failure = (code: string) => expect.objectContaining({ name: "HoldfastError", code });

describe("payloads", () => {
  it("carries small values in place, without waiting", async () => {
    const payloads = new Payloads(blobs());
    const value = { at: new Date(0), list: [1, undefined, Number.NaN], gone: undefined, text: "ä€😀" };
    const wrapped = payloads.wrapSync(value);
    // What JSON makes of it, already here (VALUE-1).
    expect(wrapped).toEqual({
      json: { at: "1970-01-01T00:00:00.000Z", list: [1, null, null], text: "ä€😀" },
    });
    expect(await payloads.wrap(value, "i1")).toEqual(wrapped);
    expect(wrapped && payloads.isInline(wrapped)).toBe(true);
  });

  it("survives the wire for every plain value", async () => {
    const payloads = new Payloads(blobs());
    for (const value of [
      undefined,
      null,
      true,
      0,
      -1.5,
      Number.POSITIVE_INFINITY,
      "",
      "x",
      [],
      {},
      [[]],
      { a: { b: null } },
    ]) {
      const wire = decode(Payload, encode(await payloads.wrap(value, "i1")));
      if (wire.kind !== "ok") throw new Error(wire.message);
      expect(await payloads.unwrap(wire.value)).toEqual(
        value === undefined ? undefined : JSON.parse(JSON.stringify(value)),
      );
    }
  });

  it("does not share what it wrapped with whoever gave it", () => {
    const value = { list: [1] };
    const wrapped = new Payloads(blobs()).wrapSync(value);
    value.list.push(2);
    expect(wrapped).toEqual({ json: { list: [1] } });
  });

  it("stores big values once and checks them on the way back", async () => {
    const store = blobs();
    let puts = 0;
    const counting: BlobStore = {
      put: (key, bytes) => {
        puts++;
        return store.put(key, bytes);
      },
      get: (key) => store.get(key),
      touch: (key) => store.touch(key),
      delete: (key) => store.delete(key),
      list: (prefix) => store.list(prefix),
    };
    const payloads = new Payloads(counting, { inlineBytes: 100 });
    const big = { text: "x".repeat(500_000) };
    expect(payloads.wrapSync(big)).toBeUndefined();
    const first = await payloads.wrap(big, "i1");
    const second = await payloads.wrap(big, "i1");
    expect(second).toEqual(first);
    expect(puts).toBe(1);
    if ("json" in first) throw new Error("inline");
    expect(first.blob.key).toBe(`i1/${first.blob.sha256}`);
    expect(await payloads.unwrap(first)).toEqual(big);
    await store.put(first.blob.key, encode("another"));
    await expect(payloads.unwrap(first)).rejects.toMatchObject({ code: "blob_damaged" });
    await payloads.wrap(big, "i2");
    expect(await store.delete(first.blob.key)).toBe(true);
    await expect(payloads.unwrap(first)).rejects.toMatchObject({ name: "Fault", code: "blob_missing" });
    expect(await store.list("")).toHaveLength(1);
  });

  it("counts bytes, not characters", () => {
    const payloads = new Payloads(blobs(), { inlineBytes: 300 });
    expect(payloads.wrapSync("ä".repeat(149))).toEqual({ json: "ä".repeat(149) });
    expect(payloads.wrapSync("ä".repeat(150))).toBeUndefined();
  });

  it("says what cannot travel, and why", async () => {
    const payloads = new Payloads(blobs(), { maxBytes: 1_000 });
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    let deep: unknown = 1;
    for (let i = 0; i < 5_000; i++) deep = [deep];
    const throwing = {
      toJSON() {
        throw new Error("no");
      },
    };
    for (const value of [cycle, 10n, { n: 10n }, () => 1, Symbol("s"), throwing, deep]) {
      expect(() => payloads.wrapSync(value)).toThrow(failure("not_serialisable"));
      await expect(payloads.wrap(value, "i1")).rejects.toEqual(failure("not_serialisable"));
    }
    expect(() => payloads.wrapSync("x".repeat(1_000))).toThrow(/1002 bytes.*limit of 1000/);
    expect(() => payloads.wrapSync("x".repeat(1_000))).toThrow(failure("payload_too_large"));
  });

  it("accepts nothing that its reader would refuse for its depth", () => {
    const payloads = new Payloads(blobs());
    let value: unknown = 1;
    let depth = 0;
    let accepted: Payload | undefined;
    for (;;) {
      value = [value];
      depth++;
      try {
        accepted = payloads.wrapSync(value);
      } catch {
        break;
      }
    }
    expect(depth).toBeGreaterThan(100);
    // As deep as it goes, inside an event inside a commit.
    const commit = { events: [{ input: accepted, carried: { signals: [{ payload: accepted }] } }] };
    expect(parseJson(encode(commit)).kind).toBe("ok");
  });
});
