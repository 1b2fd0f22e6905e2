/** Figures, not limits: how fast a history of 10 000 events becomes a running instance again. */
import { expect, test } from "vitest";
import { defineActivity, defineOrchestration } from "../../../shared/definitions/index.ts";
import { Bench } from "../../support/worlds/instance-bench.ts";
import { completed, start } from "../../support/worlds/instance-messages.ts";

const step = defineActivity("step", { run: async (_ctx, n: number) => n });
const steps = defineOrchestration("steps", {
  async run(ctx, { n, wide }: { n: number; wide: number }) {
    let sum = 0;
    for (let i = 0; i < n; i += wide)
      for (const part of await Promise.all(Array.from({ length: wide }, (_, j) => ctx.run(step, i + j))))
        sum += part;
    return sum;
  },
});

for (const [what, wide] of [
  ["one activity after the other", 1],
  ["in groups of 100", 100],
] as const) {
  test(`replays 10 000 events, ${what}`, async () => {
    const n = 5000;
    const bench = new Bench({ step, steps }, "live", { unchecked: true });
    await bench.turn(start("steps", { n, wide }));
    const turnsAt = performance.now();
    // All but the last answer: the instance is still running, so its code is replayed.
    for (let done = 0; done < n - wide; done += wide)
      await bench.turn(...bench.open("step").map((of) => completed(of, 1)));
    const turnsMs = performance.now() - turnsAt;
    const events = bench.events.length;
    const startedAt = performance.now();
    await bench.reload();
    const ms = performance.now() - startedAt;
    expect(bench.fault).toBeUndefined();
    expect(bench.open("step")).toHaveLength(wide);
    const rate = (count: number, took: number) => `${Math.round(count / (took / 1000))}/s`;
    console.log(
      `${what}: ${events} events, ${bench.commits.length} commits; replayed in ${ms.toFixed(0)} ms (${rate(events, ms)}), lived at ${rate(events, turnsMs)}`,
    );
  });
}
