/** What the pictures of every page show: one definition for each thing a page can say. Part of app.ts. */
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  definePool,
  defineQuery,
  defineSession,
  defineUpdate,
} from "../../../../shared/sdk/index.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export const chargeCard = defineActivity("charge-card", {
  input: z.object({ card: z.string(), cents: z.int() }),
  retry: { maxAttempts: 3, initialDelay: "100ms" },
  run: async (_ctx, { card }): Promise<string> => {
    await pause(80);
    throw Object.assign(new Error(`the bank declined ${card}`), { code: "card_declined" });
  },
});
export const reserveStock = defineActivity("reserve-stock", {
  run: async (_ctx, item: string) => `${item} reserved`,
});
/** Fails at its second step. */
export const checkout = defineOrchestration("checkout", {
  input: z.object({ item: z.string(), cents: z.int() }),
  async run(ctx, { item, cents }) {
    await ctx.run(reserveStock, item);
    return await ctx.run(chargeCard, { card: "…4242", cents });
  },
});

/** The second deployment asks for something else first, so what began with the first one is parked. */
export const shipment = defineOrchestration("shipment", {
  async run(ctx, { item }: { item: string }) {
    if (process.env.SECOND_DEPLOYMENT) await ctx.sleep("1s");
    await ctx.run(reserveStock, item);
    await ctx.waitForSignal("packed");
    return "shipped";
  },
});

export const whisper = defineSession("whisper-large", {
  requires: { tags: ["h100"], resources: { vram: 60 } },
  init: async () => ({}),
  calls: { transcribe: call({ run: () => "" }) },
});
/** No worker has what its session needs. */
export const transcribe = defineOrchestration("transcribe", {
  async run(ctx) {
    await using session = await ctx.openSession(whisper, { creationTimeout: "1h" });
    return await session.transcribe();
  },
});

export const contents = defineQuery("contents", { output: z.array(z.string()) });
export const add = defineUpdate("add", { input: z.string(), output: z.number() });
export const cart = defineOrchestration("cart", {
  async run(ctx) {
    const items: string[] = [];
    ctx.onQuery(contents, () => items);
    ctx.onUpdate(add, (item) => items.push(item));
    await ctx.waitForSignal("checkout");
    return items;
  },
});

export const writeEssay = defineActivity("write-essay", {
  startToClose: "10m",
  async run(ctx, subject: string) {
    const words =
      `An essay about ${subject}, word by word, as a model would write it, which takes a while.`.split(" ");
    for (let i = 0; i < 600; i++) {
      await ctx.stream.write(`${words[i % words.length]} `);
      await pause(i < 60 ? 20 : 1_000);
    }
  },
});
/** Writes while it runs. */
export const essay = defineOrchestration("essay", {
  run: (ctx, subject: string) => ctx.run(writeEssay, subject),
});

export const conversation = defineSession("conversation", {
  init: () => ({ said: 0 }),
  calls: {
    say: call({ input: z.string(), run: (state: { said: number }, text) => `${++state.said}: ${text}` }),
  },
});
export const translator = defineSession("translator", {
  init: () => ({}),
  calls: { translate: call({ input: z.string(), run: (_state, word) => word.toUpperCase() }) },
});
export const translators = definePool(translator, { min: 2, max: 4 });

export const importFile = defineOrchestration("import-file", {
  run: async (ctx, ms: number) => {
    await ctx.sleep(ms);
  },
});
