/** A page that is not listed is not found. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

test.each([
  ["docs/llms.txt", ""],
  ["README.md", "docs/"],
])("%s lists every page of docs/", (path, prefix) => {
  const text = readFileSync(join(root, path), "utf8");
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  expect(pages.filter((name) => !text.includes(`(${prefix}${name})`))).toEqual([]);
});
