/** The models of examples/hosts, used by an orchestration that can be stopped in the middle. */
import { defineOrchestration } from "holdfast";
import { mailModel } from "../../examples/hosts/app.ts";

export * from "../../examples/hosts/app.ts";

/** Sorts one half, tells which process it was, waits for `go`, sorts the other half. */
export const sortInHalves = defineOrchestration("sort-in-halves", {
  async run(ctx, { mails }: { mails: string[] }): Promise<string[]> {
    await using model = await ctx.openSession(mailModel, { onLost: "reclaim", creationTimeout: "1m" });
    const labels: string[] = [];
    for (const [at, mail] of mails.entries()) {
      if (at === Math.floor(mails.length / 2)) {
        ctx.setStatus({ pid: await model.pid(null) });
        await ctx.waitForSignal("go");
      }
      labels.push((await model.classify(mail)).label);
    }
    return labels;
  },
});
