/** The kit as users have it: from the built package, under each runner, in a process of the runner's own. */
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const runners = join(root, "test/support/runners");

/** Everything it printed. It ends by itself only when nothing is open any more. */
async function run(args: string[], env: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: "1", ...env },
  });
  return `${stdout}${stderr}`;
}

test("node:test", async () => {
  expect(await run(["--import", "tsx", "--test", join(runners, "first.node-test.ts")])).toMatch(/pass 3\b/);
});

test("vitest", async () => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const said = await run([vitest, "run", "--config", join(runners, "vitest.config.ts")]);
  expect(said).toMatch(/Tests +1 passed/);
  expect(said).not.toMatch(/hanging|something prevents/i);
});

test("jest", async () => {
  const jest = join(root, "node_modules/jest/bin/jest.js");
  const args = ["--experimental-vm-modules", jest, "--config", join(runners, "jest.config.mjs")];
  const said = await run(args);
  expect(said).toMatch(/Tests: +3 passed, 3 total/);
  expect(said).not.toMatch(/did not exit|open handle/i);
});
