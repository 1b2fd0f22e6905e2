import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { lockfilePath, missingFrom, readLockfile } from "../support/complete-lockfile.ts";

test("the lock file names the packages of every platform: if not, run test/support/complete-lockfile.ts", () => {
  expect([...missingFrom(readLockfile()).keys()]).toEqual([]);
});

test("the lock file names no registry", () => {
  expect(readFileSync(lockfilePath, "utf8")).not.toMatch(/"resolved":/);
});
