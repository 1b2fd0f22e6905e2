import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { jsonSchemaFiles } from "../../schemas/json-schema.ts";

const folder = new URL("../../schemas/json/", import.meta.url);

test("the published JSON Schemas are current: if not, run `npm run schemas`", () => {
  const files = jsonSchemaFiles();
  expect(readdirSync(folder).sort()).toEqual([...files.keys()].sort());
  for (const [name, text] of files) expect(readFileSync(new URL(name, folder), "utf8"), name).toBe(text);
});
