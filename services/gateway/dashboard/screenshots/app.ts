/**
 * The application of the screenshots: documents labelled in a session, a report, and a question to a
 * person.
 */
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  type InitContext,
} from "../../../../shared/sdk/index.ts";

export * from "./busy-app.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface Labeller {
  labelled: number;
}

export const classifier = defineSession("ml-classifier", {
  config: z.object({ model: z.string() }),
  requires: { tags: ["gpu"], resources: { vram: 2 } },
  leaseTtl: "3s",
  init: async (ctx: InitContext, { model }: { model: string }): Promise<Labeller> => {
    await pause(900);
    ctx.reportModel({ name: model, device: "cuda:0", loadMs: 900, bytes: 268_000_000 });
    return { labelled: 0 };
  },
  calls: {
    classify: call({
      input: z.string(),
      output: z.object({ label: z.string(), score: z.number() }),
      async run(state: Labeller, text) {
        await pause(120 + (text.length % 7) * 30);
        state.labelled++;
        return { label: text.length % 3 === 0 ? "negative" : "positive", score: 0.97 };
      },
    }),
  },
  snapshot: (state) => ({ labelled: state.labelled }),
});

export const fetchPage = defineActivity("fetch-page", {
  async run(_ctx, page: number) {
    await pause(260);
    if (page % 9 === 4) throw new Error("upstream answered 503");
    return `page ${page}`;
  },
});

export const nightlyReport = defineOrchestration("nightly-report", {
  async run(ctx, { pages }: { pages: number }) {
    const found = await Promise.all(
      Array.from({ length: pages }, (_, page) => ctx.run(fetchPage, page, { retry: { maxAttempts: 2 } })),
    );
    return found.length;
  },
});

export const classifyDocs = defineOrchestration("classify-docs", {
  input: z.object({
    docs: z.int().min(1).max(500).describe("How many documents to label"),
    model: z.enum(["distilbert-sst2", "tiny-bert"]).default("distilbert-sst2"),
    approve: z.boolean().default(false).describe("Wait for somebody to approve"),
  }),
  async run(ctx, { docs, model, approve }) {
    await using session = await ctx.openSession(classifier, { config: { model }, onLost: "reclaim" });
    const report =
      docs > 20 ? ctx.child(nightlyReport, { pages: 3 }, { id: `${ctx.instanceId}-report` }) : undefined;
    let labelled = 0;
    for (let page = 0; labelled < docs; page++) {
      const [text] = await Promise.all([
        session.classify(`document ${page}`),
        page % 6 === 0 ? ctx.run(fetchPage, page, { retry: { maxAttempts: 3 } }) : undefined,
      ]);
      if (text) labelled++;
      if (page % 5 === 0) ctx.setStatus({ labelled, of: docs });
      if (page % 12 === 11) await ctx.sleep(700);
    }
    if (approve) await ctx.waitForSignal("approve");
    return { labelled, report: await report };
  },
});
