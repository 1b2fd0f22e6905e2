/** What a test meets when it is tried again. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const tests = resolve(import.meta.dirname, "..");

test("what belongs to an installation is made anew with it: `prepare`, not a `beforeAll` of the file", () => {
  const withInstallation = readdirSync(tests, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts"))
    .map((path) => ({ path, text: readFileSync(join(tests, path), "utf8") }))
    .filter(({ text }) => /^\s*(const|let) .*= installation\(/m.test(text));
  expect(withInstallation.length).toBeGreaterThan(10);
  expect(withInstallation.filter(({ text }) => /\bbeforeAll\(/.test(text)).map(({ path }) => path)).toEqual(
    [],
  );
});
