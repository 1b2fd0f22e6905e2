/** Every code in the sources stands in the table behind docs/errors.md, and the page is current. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { errorsReference } from "../../services/cli/reference/errors.ts";
import { codeGroups, meaningOf } from "../../shared/errors/codes/index.ts";

const root = resolve(import.meta.dirname, "../..");
const sources = ["schemas", "shared", "services"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter(
      (path) => path.endsWith(".ts") && !path.includes("dashboard/") && !path.startsWith("errors/codes/"),
    )
    .map((path) => join(folder, path)),
);

/** Of zod's own complaints, not of ours. */
const foreign = new Set(["custom"]);
/** An error's code as a literal, as one of two, and as an argument of the functions that make errors. */
const patterns = [
  /\bcode: "([a-z]\w*)"/g,
  /\bcode: [^"\n]{1,60}\? "([a-z]\w*)"/g,
  /\bcode: [^"\n]{1,60} : "([a-z]\w*)"/g,
  /\bcode: [^"\n]{1,60}\? "[a-z]\w*" : "([a-z]\w*)"/g,
  /\b(?:validate|parsed|refused|refusal|modelError|leftOut)\([^"`\n]*"([a-z]+_\w+)"/g,
  /\["(?:transient|contract|config|bug)", "([a-z]\w*)"/g,
  /^ {2,4}"(?:transient|contract|config|bug)",\n\s+"([a-z]\w*)"/gm,
  /^ {2}\| "(model_\w+)"/gm,
  /\bneedsNewerVersion = "(\w+)"/g,
];

const thrown = new Map<string, string>();
for (const path of sources) {
  const text = readFileSync(join(root, path), "utf8");
  for (const pattern of patterns)
    for (const [, code = ""] of text.matchAll(pattern)) if (!foreign.has(code)) thrown.set(code, path);
}
/** Made of two parts, so that no literal has them. */
const composed = ["start_rejected", "start_replaced", "start_debounced", "start_throttled", "unknown_call"];

test("every code of an error, a log line or a finding has a cause and a remedy in shared/errors/codes", () => {
  const unexplained = [...thrown].filter(([code]) => meaningOf(code) === undefined);
  expect(unexplained.map(([code, path]) => `${code} (${path})`)).toEqual([]);
  expect(composed.filter((code) => meaningOf(code) === undefined)).toEqual([]);
});

test("the table has no code that nothing gives, and none twice", () => {
  const all = codeGroups.flatMap(({ codes }) => Object.keys(codes));
  const dashboard = "gateway_away";
  expect(all.filter((code) => !thrown.has(code) && !composed.includes(code) && code !== dashboard)).toEqual(
    [],
  );
  expect(all.filter((code, index) => all.indexOf(code) !== index)).toEqual([]);
});

test("docs/errors.md is what the table says; else run `npm run docs:errors`", () => {
  expect(readFileSync(join(root, "docs/errors.md"), "utf8")).toBe(errorsReference());
});
