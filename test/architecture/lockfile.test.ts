import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { lockfilePath, missingFrom, readLockfile } from "../support/documents/complete-lockfile.ts";

test("the lock file names the packages of every platform: if not, run test/support/documents/complete-lockfile.ts", () => {
  expect([...missingFrom(readLockfile()).keys()]).toEqual([]);
});

test("the lock file names no registry", () => {
  expect(readFileSync(lockfilePath, "utf8")).not.toMatch(/"resolved":/);
});

test("every package that is installed with Holdfast has the digest that npm ci checks", () => {
  const without = Object.entries(readLockfile().packages).filter(
    ([path, { dev, devOptional, peer, link, integrity }]) =>
      path !== "" && !(dev || devOptional || peer || link) && !integrity,
  );
  expect(without.map(([path]) => path)).toEqual([]);
});

test("every package takes the Node that package.json promises: npm ci warns of none", () => {
  const refusing = Object.entries(readLockfile().packages).filter(([path, { engines }]) => {
    if (path === "" || engines?.node === undefined) return false;
    // The lowest version of each range; ours is 20.19.
    const least = engines.node.split("||").map((range) => Number(/\d+/.exec(range)?.[0] ?? 0));
    return Math.min(...least) > 20;
  });
  expect(refusing.map(([path]) => path)).toEqual([]);
});
