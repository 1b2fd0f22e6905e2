import { expect, test } from "vitest";
import { Payload } from "../../schemas/index.ts";

test("undefined survives the wire as a payload with a json key", () => {
  const parsed = Payload.parse(JSON.parse(JSON.stringify({ json: undefined })));
  expect("json" in parsed).toBe(true);
  expect(parsed).toEqual({ json: undefined });
});

test("a payload is one of both, never a mixture", () => {
  expect(Payload.safeParse({ json: 1, blob: {} }).success).toBe(false);
  expect(Payload.safeParse({ text: 1 }).success).toBe(false);
});
