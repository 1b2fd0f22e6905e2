/** FITS-1: what fits is what the schema returns, whatever is sent. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fitOf, fits } from "../../../schemas/fits.ts";
import { Commit, Payload } from "../../../schemas/index.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";
import { samplesOf } from "../../support/documents/samples.ts";
import { everyWired } from "../../support/documents/wire-schemas.ts";

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const random = seededRandom(seed);
const any = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;

const odd: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 2 ** 60, 1, "", "a b", "x".repeat(300), "json", [], [1], {}],
  ...[{ json: 1 }, { blob: 1 }, { json: 1, blob: {} }, { later: 1 }, JSON.parse('{"__proto__":{"x":1}}')],
];

/** The value with one thing changed somewhere in it. */
function changed(value: unknown): unknown {
  if (typeof value !== "object" || value === null || random.next() < 0.15) return structuredClone(any(odd));
  if (Array.isArray(value)) {
    const at = Math.floor(random.next() * (value.length + 1));
    return value.length === at
      ? [...value, any(odd)]
      : value.map((one, n) => (n === at ? changed(one) : one));
  }
  const names = Object.keys(value);
  const name = random.next() < 0.15 || names.length === 0 ? any(["later", "__proto__", "json"]) : any(names);
  const kept = Object.entries(value).filter(([known]) => known !== name);
  if (random.next() < 0.25) return Object.fromEntries(kept);
  const before: unknown = Object.entries(value).find(([known]) => known === name)?.[1];
  return Object.fromEntries([...kept, [name, changed(before)]]);
}

function judge(schema: z.ZodType, json: string): string {
  const value: unknown = JSON.parse(json);
  const verdict = fitOf(schema, value);
  const parsed = schema.safeParse(JSON.parse(json));
  const about = `seed ${seed}: ${json}`;
  if (verdict === "rejected") expect(parsed.success, about).toBe(false);
  if (verdict === "same") expect({ success: true, data: value }, about).toStrictEqual(parsed);
  return verdict;
}

const schemas = new Map<string, z.ZodType>(everyWired().map(({ name, schema }) => [name, schema]));
schemas.set("commit", Commit);

describe.each([...schemas])("%s", (_name, schema) => {
  test("is parsed alike by the short way and by the schema", () => {
    for (const sample of samplesOf(schema)) {
      judge(schema, JSON.stringify(sample));
      for (let n = 0; n < 5; n++) {
        let value = sample;
        for (let times = 0; times <= n % 3; times++) value = changed(value);
        judge(schema, JSON.stringify(value) ?? "null");
      }
    }
  });
});

test("commits of everyday take the short way", () => {
  const event = { id: 1, kind: "instance.started", name: "a", input: {}, rules: 1 };
  const failed = {
    id: 2,
    kind: "activity.failed",
    of: 1,
    error: { code: "c", message: "m", retryable: true },
  };
  const commit = {
    v: 1,
    commitId: "c",
    instanceId: "i",
    execution: 1,
    at: 1,
    inbox: [3],
    events: [event, failed],
  };
  expect(judge(Commit, JSON.stringify(commit))).toBe("same");
  expect(judge(Commit, JSON.stringify({ ...commit, ofLater: 1 }))).toBe("same");
  expect(judge(Commit, JSON.stringify({ ...commit, events: [] }))).toBe("rejected");
  expect(judge(Commit, JSON.stringify({ ...commit, events: [{ ...event, kind: "of.later" }] }))).toBe(
    "unsure",
  );
});

test("a payload without a value gets its key", () => {
  const value = {};
  expect(fits(Payload, value) && "json" in value).toBe(true);
});

test("an option that would change the value is not passed over for a later one that would not", () => {
  const schema = z.union([z.looseObject({ a: z.string().transform(Number) }), z.looseObject({})]);
  expect(fitOf(schema, { a: "1" })).toBe("unsure");
});

test("a field of any value must be there all the same", () => {
  const schema = z.looseObject({ a: z.unknown() });
  expect(judge(schema, "{}")).toBe("unsure");
  expect(judge(schema, '{"a":null}')).toBe("same");
});
