/** Activities for workers that are killed, drained and measured. */
import { defineActivity } from "holdfast";

export const echo = defineActivity("echo", { run: (_ctx, value: unknown) => value });

/** Beats, says which process it is, and never ends in its first delivery; the next one tells what it was handed. */
export const survivor = defineActivity("survivor", {
  async run(ctx) {
    if (ctx.lastHeartbeat !== undefined) return { before: ctx.lastHeartbeat, pid: process.pid };
    ctx.heartbeat({ pid: process.pid });
    return new Promise<never>(() => undefined);
  },
});

export const takes = defineActivity("takes", {
  run: (_ctx, ms: number) => new Promise<string>((resolve) => setTimeout(() => resolve("took it"), ms)),
});

/** Leaves a promise behind that rejects later, unhandled. */
export const careless = defineActivity("careless", {
  async run() {
    void Promise.reject(new Error("forgotten"));
    setTimeout(() => {
      throw new Error("thrown where nobody catches");
    }, 1);
    return "done";
  },
});

/** Poison: the worker that runs it dies. */
export const deadly = defineActivity("deadly", {
  run(): never {
    process.kill(process.pid, "SIGKILL");
    throw new Error("unreachable");
  },
});
