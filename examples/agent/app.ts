/** A conversation that lives in one worker's memory. Run it: npx holdfast dev --app examples/agent/app.ts */
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type CallContext, call, defineOrchestration, defineSession, type InitContext } from "holdfast";
import { loadPipeline, type Pipeline } from "holdfast/inference";
import { z } from "zod";
import { type Intent, replyTo, Turn } from "./reply.ts";

const Config = z.object({ paceMs: z.int().nonnegative().default(40) });
type Config = z.infer<typeof Config>;

/** What the worker remembers. The turns are worth keeping; the model can be loaded again. */
interface Conversation {
  turns: Turn[];
  readonly intents: Pipeline;
  readonly paceMs: number;
}

const Reply = z.object({ text: z.string(), intent: z.string(), stopped: z.boolean() });

export const conversation = defineSession("conversation", {
  isolation: "process",
  leaseTtl: "3s",
  config: Config,
  checkpointEvery: 1,
  init: async (ctx: InitContext, { paceMs }: Config): Promise<Conversation> => ({
    turns: [],
    intents: await loadIntents(ctx),
    paceMs,
  }),
  calls: {
    /** One turn: the reply is streamed token by token, then returned whole. The event `stop` cuts it short. */
    say: call({
      input: z.string().min(1).max(10_000),
      output: Reply,
      async run(state: Conversation, text, ctx) {
        const intent = await intentOf(state.intents, text);
        const listening = listenForStop(ctx);
        const written: string[] = [];
        for (const token of replyTo(state.turns, text, intent)) {
          if (listening.stopped) break;
          await ctx.stream.write(token);
          written.push(token);
          await pause(state.paceMs, undefined, { signal: ctx.signal });
        }
        const reply = { text: written.join(""), intent, stopped: listening.stopped };
        // Last: a turn that is cut off by the end of its worker has not happened.
        state.turns.push({ who: "user", text }, { who: "agent", text: reply.text });
        return reply;
      },
    }),
    transcript: call({ output: z.array(Turn), run: ({ turns }) => turns }),
  },
  checkpoint: ({ turns }) => new TextEncoder().encode(JSON.stringify(turns)),
  restore: async (ctx, { paceMs }, bytes): Promise<Conversation> => ({
    turns: z.array(Turn).parse(JSON.parse(new TextDecoder().decode(bytes))),
    intents: await loadIntents(ctx),
    paceMs,
  }),
  snapshot: ({ turns }) => ({ turns: turns.length }),
  shutdown: ({ intents }) => intents.dispose(),
});

/** Every signal `say` is a turn; `"bye"` ends the conversation. A worker that dies takes nothing along but time. */
export const agentConversation = defineOrchestration("agent-conversation", {
  input: Config.prefault({}),
  output: z.array(Turn),
  async run(ctx, config) {
    await using session = await ctx.openSession(conversation, { config, onLost: "restore" });
    for (let turns = 1; ; turns++) {
      const said = z
        .string()
        .min(1)
        .max(10_000)
        .safeParse(await ctx.waitForSignal("say"));
      if (!said.success) continue; // its sender got no answer, but the conversation lives
      if (said.data === "bye") return await session.transcript(undefined);
      const { text } = await session.say(said.data);
      ctx.setStatus({ turns, sessionId: session.id, last: text });
    }
  },
});

async function loadIntents(ctx: InitContext): Promise<Pipeline> {
  const pipeline = await loadPipeline({
    task: "text-classification",
    model: "spam-use",
    localModelPath: fileURLToPath(new URL("../models", import.meta.url)),
    device: "cpu",
  });
  const { model, device, loadMs, memoryBytes } = pipeline.facts;
  ctx.reportModel({ name: model, device, loadMs, bytes: memoryBytes });
  return pipeline;
}

async function intentOf(intents: Pipeline, text: string): Promise<Intent> {
  const [row] = await intents.run([text]);
  return z.object({ label: z.string() }).parse(row).label === "spam" ? "advertising" : "talking";
}

/** `client.session(id).send("stop")` arrives while the call runs. Listening ends with the call. */
function listenForStop(ctx: CallContext): { stopped: boolean } {
  const listening = { stopped: false };
  void (async () => {
    for await (const { name } of ctx.session.events) {
      if (name === "stop") listening.stopped = true;
    }
  })();
  return listening;
}
