import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { threadLimits } from "../../../shared/inference/thread-limits.ts";

describe("threadLimits", () => {
  test("shares the cores but one between the hosts", () => {
    expect(threadLimits({ cores: 9, hosts: 2 })).toEqual({
      threads: 4,
      env: {
        OMP_NUM_THREADS: "4",
        OPENBLAS_NUM_THREADS: "4",
        MKL_NUM_THREADS: "4",
        NUMEXPR_NUM_THREADS: "4",
        VECLIB_MAXIMUM_THREADS: "4",
      },
    });
  });

  test("gives one thread on a small or crowded machine", () => {
    expect(threadLimits({ cores: 1, hosts: 1 }).threads).toBe(1);
    expect(threadLimits({ cores: 2, hosts: 1 }).threads).toBe(1);
    expect(threadLimits({ cores: 4, hosts: 16 }).threads).toBe(1);
  });

  test("takes the user's number instead of the share", () => {
    expect(threadLimits({ cores: 2, hosts: 4, threads: 3 }).env.OMP_NUM_THREADS).toBe("3");
  });

  test("never asks for fewer than one thread nor for more than there are cores", () => {
    const count = fc.oneof(
      fc.integer({ min: -4, max: 256 }),
      fc.constant(Number.NaN),
      fc.double({ max: 64, min: 0 }),
    );
    fc.assert(
      fc.property(count, count, (cores, hosts) => {
        const { threads, env } = threadLimits({ cores, hosts });
        expect(Number.isInteger(threads)).toBe(true);
        expect(threads).toBeGreaterThanOrEqual(1);
        expect(threads).toBeLessThanOrEqual(Math.max(1, cores || 1));
        expect(new Set(Object.values(env))).toEqual(new Set([String(threads)]));
      }),
    );
  });
});
