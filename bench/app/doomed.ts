/** Work that ends the process it runs in: the benchmark measures how long it then stands still. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineActivity, defineOrchestration } from "holdfast";
import { machineMs } from "../clock.ts";

export interface Death {
  /** The first attempt writes the time of its death here; the second finds it and so knows that it is the second. */
  file: string;
  /** How long the first attempt runs before it dies. */
  afterMs: number;
}

export interface Recovery {
  killedAt: number;
  resumedAt: number;
}

export const doomed = defineActivity("doomed", {
  async run(_ctx, { file, afterMs }: Death): Promise<Recovery> {
    const resumedAt = machineMs();
    if (existsSync(file)) return { killedAt: Number(readFileSync(file, "utf8")), resumedAt };
    if (afterMs > 0) await delay(afterMs);
    writeFileSync(file, String(machineMs()));
    process.kill(process.pid, "SIGKILL");
    return new Promise<never>(() => undefined);
  },
});

export const recovered = defineOrchestration("recovered", {
  run: (ctx, death: Death) => ctx.run(doomed, death),
});

export const slowStamp = defineActivity("slow-stamp", {
  async run(_ctx, ms: number) {
    await delay(ms);
    return machineMs();
  },
});

/** `{n, ms}` → the stamps of n activities of so many milliseconds, one after the other. */
export const slowSteps = defineOrchestration("slow-steps", {
  async run(ctx, { n, ms }: { n: number; ms: number }): Promise<number[]> {
    const stamps: number[] = [];
    for (let step = 0; step < n; step++) stamps.push(await ctx.run(slowStamp, ms));
    return stamps;
  },
});
