/**
 * Source design S3, "Activity Sessions" v2: the orchestration creates a session, workers compete for it, activities are
 * scheduled on it, and when its worker dies it is lost for good: `session_lost`, never silently claimed again. The
 * orchestration creates a new one and gives it what it needs to go on.
 */
import { defineActivity, defineOrchestration, HoldfastError, SessionLostError } from "holdfast";
import { z } from "zod";

export const journal: string[] = [];

/** `sessionManager` of the Copilot SDK: conversations in the memory of a worker. */
export const conversations = new Map<string, string[]>();

export const hydrate = defineActivity("hydrate", {
  input: z.array(z.string()),
  run: (ctx, history) => {
    const { id, epoch } = ctx.session ?? { id: "", epoch: 0 };
    journal.push(`hydrate ${history.length}`);
    conversations.set(`${id}/${epoch}`, [...history]);
  },
});

export const runAgentTurn = defineActivity("runAgentTurn", {
  input: z.string(),
  run: (ctx, prompt) => {
    const { session } = ctx;
    if (!session) throw new Error("scheduled without a session");
    const conversation = conversations.get(`${session.id}/${session.epoch}`) ?? [];
    if (prompt === "corrupt") session.abort("the conversation is corrupted"); // activity_ctx.abort_session()
    conversation.push(prompt);
    conversations.set(`${session.id}/${session.epoch}`, conversation);
    return conversation.length;
  },
});

/** The design's loop: a turn, a timer, a turn; a new session and its history after `session_lost`. */
export const agent = defineOrchestration("s3-agent", {
  input: z.array(z.string()),
  async run(ctx, prompts) {
    let session = await ctx.openSession();
    const said: string[] = [];
    const lengths: number[] = [];
    let lost = 0;
    for (const prompt of prompts) {
      try {
        lengths.push(await session.run(runAgentTurn, prompt));
      } catch (error) {
        if (!(error instanceof SessionLostError)) throw error;
        lost++;
        session = await ctx.openSession(); // worker died: create a new session, re-hydrate
        await session.run(hydrate, said);
        lengths.push(await session.run(runAgentTurn, prompt === "corrupt" ? "again" : prompt));
      }
      said.push(prompt);
      await ctx.sleep("60s");
    }
    await session.close();
    return { lengths, lost };
  },
});

/** `create_session_with_id` twice is once; `close_session` twice is once; nothing runs on it afterwards. */
export const idempotent = defineOrchestration("s3-idempotent", {
  async run(ctx) {
    const first = await ctx.openSession({ id: `${ctx.instanceId}-x` });
    const again = await ctx.openSession({ id: `${ctx.instanceId}-x` });
    await first.run(runAgentTurn, "one");
    const length = await again.run(runAgentTurn, "two");
    await first.close();
    await again.close();
    const late = await again
      .run(runAgentTurn, "three")
      .catch((error: unknown) => (error instanceof HoldfastError ? error.code : "?"));
    return { same: first.id === again.id, length, late };
  },
});
