import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { needsHooks } from "../../../shared/app-loading/needs-hooks.ts";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-hooks-")));
  put("package.json", `{"type":"module"}`);
  put("node_modules/holdfast/package.json", `{"name":"holdfast","type":"module","exports":"./index.js"}`);
  put("node_modules/holdfast/index.js", "export const here = 1;");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}
const url = (name: string) => pathToFileURL(join(folder, name)).href;
const needs = (entry: string, holdfast = url("node_modules/holdfast/index.js")) =>
  needsHooks(entry, { own: { holdfast }, home: "file:///elsewhere/" });

test("an application in JavaScript that finds this copy of the package needs no hooks", () => {
  put(
    "steps/one.js",
    `import { readFile } from "node:fs/promises"; import fs from 'fs'; export const one = readFile;`,
  );
  const entry = put(
    "app.js",
    `import { here } from "holdfast";\nexport * from "./steps/one.js";\nexport default here;`,
  );
  expect(needs(entry)).toBe(false);
});

test("whatever the hooks would change needs them", () => {
  const app = put("app.js", `import { here } from "holdfast"; export default here;`);
  expect(needs(app, url("another/copy.js"))).toBe(true);
  expect(needs(put("app.ts", "export const a: number = 1;"))).toBe(true);
  expect(needs(put("lends.js", `import { z } from "a-package-that-holdfast-brings"; export { z };`))).toBe(
    true,
  );
  expect(needs(put("computes.js", "export const load = (name) => import(name);"))).toBe(true);
  expect(needs(put("gone.js", `import "./not-there.js";`))).toBe(true);
  put("typed.ts", "export const a: number = 1;");
  expect(needs(put("mixed.js", `export * from "./typed.ts";`))).toBe(true);
  const lowered =
    "for (const a of b) { var _stack = []; try { x(); } catch (_) { var _error = _, _hasError = true; } finally { __callDispose(_stack, _error, _hasError); } }";
  expect(needs(put("lowered.js", lowered))).toBe(true);
});

test("a package of the application with another copy of Holdfast inside needs them", () => {
  put("node_modules/lib/package.json", `{"name":"lib","exports":"./index.js"}`);
  put("node_modules/lib/index.js", "");
  const entry = put("app.js", `import "lib";`);
  expect(needs(entry)).toBe(false);
  put("node_modules/lib/node_modules/holdfast/package.json", `{"name":"holdfast","exports":"./other.js"}`);
  put("node_modules/lib/node_modules/holdfast/other.js", "");
  expect(needs(entry)).toBe(true);
});
