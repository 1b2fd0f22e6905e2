/**
 * A short run of the nemesis: a whole fleet of real processes is killed, paused, cut off, slowed down, given wrong clocks
 * and a full store while users work; then `holdfast verify` reads the streams. `HOLDFAST_TEST_SEED=7 npx vitest run
 * test/fault/nemesis.test.ts` repeats a run, as far as real processes can be repeated; `npm run test:nemesis` is the long
 * one.
 */
import { expect, test } from "vitest";
import { runNemesis } from "../nemesis/nemesis.ts";

test("I17: after every blow all that was acknowledged comes to its end, once", async () => {
  const seed = Number(process.env.HOLDFAST_TEST_SEED ?? Math.floor(Math.random() * 1e6));
  const said: string[] = [`seed ${seed}`];
  const result = await runNemesis({
    ...{ seed, seconds: 20, instances: 30, servers: 1 },
    say: (line) => void said.push(line),
  });
  expect(result.wrong, said.join("\n")).toEqual([]);
  expect(result.report.read.instances, said.join("\n")).toBeGreaterThan(30);
  // I18: it met what it was made for.
  expect(result.branches.get("bus.reconnected"), said.join("\n")).toBeGreaterThan(0);
}, 300_000);
