/** What the users of a day run: programs whose results are known, and any others. */
import {
  type CallContext,
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../shared/definitions/index.ts";
import { sleep } from "../../../shared/runtime/index.ts";
import type { World } from "../../../shared/testing/world/world.ts";
import { expected as expectedOf, simulatedApp } from "../../apps/simulated.ts";
import { programWork, runProgram, type Step } from "../../support/worlds/random-program.ts";

/** So many sessions of this type may be held at once, by all workers together (QUOTA-1). */
export const scarceSeats = 1;
/** Larger than what travels in a message. */
const large = "x".repeat(300_000);

export function dayApp(
  world: () => World,
  stepsOf: (index: number) => readonly Step[],
  onCall: (ctx: CallContext) => void,
  slowness: number,
) {
  const quick = defineActivity("quick", { run: async (_ctx, n: number) => n });
  const bulky = defineOrchestration("bulky", { run: async () => large });
  const own = simulatedApp(world, { onCall, slowness });
  const scarce = defineSession("scarce", {
    maxTotal: scarceSeats,
    init: () => ({}),
    calls: {
      sit: call({
        run: async (_state, from: number, ctx) => {
          onCall(ctx);
          await sleep(world().clock, world().random.next() * 40 * slowness);
          return from + 1;
        },
      }),
    },
  });
  return {
    ...own,
    ...programWork,
    quick,
    bulky,
    kid: defineOrchestration("kid", { run: (ctx) => ctx.run(programWork.work, 0) }),
    any: defineOrchestration("any", { run: (ctx, index: number) => runProgram(ctx, stepsOf(index)) }),
    updated: defineOrchestration("updated", {
      run: async (ctx, n: number) => {
        const seen: unknown[] = [];
        ctx.onUpdate("add", async (value) => {
          await ctx.run(quick, 0);
          return seen.push(value);
        });
        await ctx.until(() => seen.length >= n);
        return seen;
      },
    }),
    cancelled: defineOrchestration("cancelled", {
      run: async (ctx) => {
        try {
          await ctx.sleep("10m");
          return "slept";
        } catch (error) {
          await ctx.uncancellable((own) => own.run(quick, 1));
          throw error;
        }
      },
    }),
    // More at once than a worker has slots for.
    crowd: defineOrchestration("crowd", {
      run: async (ctx, n: number) => {
        const parts = await Promise.all(
          Array.from({ length: n * 8 }, (_, i) => ctx.run(own.add, { a: i, b: 1 })),
        );
        return parts.length;
      },
    }),
    scarce,
    seated: defineOrchestration("seated", {
      run: async (ctx, n: number) => {
        const options = { creationTimeout: "10m", leaseTtl: "3s", maxInitAttempts: 50 } as const;
        await using session = await ctx.openSession(scarce, {
          ...options,
          onLost: "reclaim",
          recovery: { maxAutoRetries: 50 },
        });
        let value = 0;
        for (let i = 0; i < n; i++) value = (await session.sit(value)) as number;
        return value;
      },
    }),
    asksBulky: defineOrchestration("asks-bulky", {
      run: async (ctx) => {
        const text = await ctx.child(bulky, null);
        await ctx.sleep(500);
        return text.length;
      },
    }),
  };
}

/** Result by size; undefined where it depends on when it was cancelled. */
export const expected: Record<string, ((n: number) => unknown) | undefined> = {
  ...expectedOf,
  updated: (n) => Array.from({ length: n }, (_, i) => i),
  cancelled: undefined,
  "asks-bulky": () => large.length,
  crowd: (n) => n * 8,
  seated: (n) => n,
  scheduled: () => undefined,
};

/** Its runs are instances of their own: it is over after so many. */
export const isSchedule = (name: string): boolean => name === "scheduled";

export const known = Object.keys(expected);
export const size = 3;
/** What only the second generation can record; of signals their message ids, by which a repeated one is known. */
export const ofSecondGeneration = new Set(["locals", "updated", "any", "scheduled", "signals"]);
