/** A conversation that belongs to its user: the same session for every client and orchestration that names the user. */
import { call, defineOrchestration, definePool, defineSession } from "holdfast";
import { z } from "zod";

export const conversation = defineSession("conversation", {
  config: z.object({ greeting: z.string() }),
  idleTimeout: "10m",
  init: (_ctx, { greeting }) => ({ greeting, said: [] as string[] }),
  calls: {
    say: call({
      input: z.string(),
      run: async (state, text, ctx) => {
        state.said.push(text);
        const answer = `${state.greeting} You have said ${state.said.length} things, the last: ${text}`;
        for (const word of answer.split(" ")) await ctx.stream.write(word);
        return answer;
      },
    }),
    recall: call({ run: (state) => state.said }),
  },
});

/** Loaded before the first question comes. */
export const translator = defineSession("translator", {
  init: () => ({ words: new Map([["hello", "bonjour"]]) }),
  calls: { translate: call({ input: z.string(), run: (state, word) => state.words.get(word) ?? word }) },
});
export const translators = definePool(translator, { min: 1, max: 2 });

/** Greets a user in the conversation it shares with them. */
export const remind = defineOrchestration("remind", {
  input: z.object({ user: z.string(), of: z.string() }),
  async run(ctx, { user, of }) {
    await using chat = await ctx.session(conversation, {
      key: user,
      config: { greeting: "Hello." },
      onLost: "reclaim",
    });
    return await chat.say(`(reminder: ${of})`);
  },
});
