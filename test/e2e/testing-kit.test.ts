/** The kit as users have it: from the built package, under another runner. */
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const file = join(root, "test/support/first.node-test.ts");

test("it works with node:test, and leaves nothing open", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", "--test", file], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  });
  expect(stdout).toMatch(/pass 1\b/);
});
