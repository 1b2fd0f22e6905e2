/** Sessions whose states live in Python and in Go. Run it: npx holdfast dev --app examples/hosts/app.ts */
import { call, defineOrchestration, defineSession } from "holdfast";
import { z } from "zod";

const Label = z.object({ label: z.enum(["ham", "spam"]), score: z.number() });

/** A model in Python: learnt once when the session opens, then kept in memory. Its code is in python/model.py. */
export const mailModel = defineSession("mail-model", {
  isolation: "process",
  command: ["python3", new URL("./python/model.py", import.meta.url)],
  config: z.object({ mails: z.int().min(10).max(2000).default(1000) }).default({ mails: 1000 }),
  leaseTtl: "3s",
  calls: {
    classify: call({ input: z.string(), output: Label, batch: { maxSize: 16, maxDelay: "2ms" } }),
    learn: call({ input: z.object({ text: z.string(), label: z.string() }), output: z.int() }),
    /** Streams the words that speak for spam most, and returns how many there were. */
    explain: call({ input: z.string(), output: z.int() }),
    /** Sentences as vectors: by sentence-transformers where it is installed, by hashed words where not. */
    embed: call({ input: z.string(), output: z.object({ by: z.string(), vector: z.array(z.number()) }) }),
    pid: call({ output: z.int() }),
  },
  checkpoint: true,
  snapshot: true,
});

/** Sorts mails one by one; says how far it is, and which process sorted the last one. */
export const sortMails = defineOrchestration("sort-mails-in-python", {
  input: z.object({ mails: z.array(z.string()) }),
  output: z.array(Label),
  async run(ctx, { mails }) {
    await using model = await ctx.openSession(mailModel, { onLost: "reclaim", creationTimeout: "1m" });
    const labels: z.infer<typeof Label>[] = [];
    for (const mail of mails) {
      labels.push(await model.classify(mail));
      ctx.setStatus({ done: labels.length, of: mails.length });
    }
    return labels;
  },
});

/** A counter in Go, to show how little a host needs: go/main.go. */
export const goCounter = defineSession("go-counter", {
  isolation: "process",
  command: ["go", "run", new URL("./go/main.go", import.meta.url)],
  calls: { add: call({ input: z.int(), output: z.int() }), fail: call({ output: z.null() }) },
  checkpoint: true,
});

export const countInGo = defineOrchestration("count-in-go", {
  input: z.object({ numbers: z.array(z.int()) }),
  output: z.int(),
  async run(ctx, { numbers }) {
    await using counter = await ctx.openSession(goCounter, { creationTimeout: "2m" });
    let sum = 0;
    for (const n of numbers) sum = await counter.add(n);
    return sum;
  },
});
