/** An orchestration that opens a session, calls it, and shows the outcome of each call. */
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  type OpenSessionOptions,
} from "../../../../shared/definitions/index.ts";
import type { Bench } from "../../../support/worlds/instance-bench.ts";
import { activated, claimed, held, start } from "../../../support/worlds/instance-messages.ts";

export const chat = defineSession("chat", {
  init: () => ({ turns: 0 }),
  calls: { say: call({ run: (state: { turns: number }, _text: string) => ++state.turns }) },
  checkpoint: () => new Uint8Array(),
  restore: () => ({ turns: 0 }),
});
export const pause = defineActivity("pause", { run: async () => 0 });

/** Opens a session, makes calls at once, and returns the outcome of each; then waits for a signal and calls again. */
export const uses = (options: OpenSessionOptions<undefined> & { calls?: number }) => ({
  chat,
  pause,
  uses: defineOrchestration("uses", {
    async run(ctx) {
      const { calls = 2, ...own } = options;
      const session = await ctx.openSession(chat, { id: "s", ...own });
      const outcomeOf = (result: Promise<unknown>) =>
        result.catch((error) => ({
          name: error.name,
          code: error.code,
          reason: error.reason,
          epoch: error.epoch,
        }));
      const first = await Promise.all(Array.from({ length: calls }, () => outcomeOf(session.say("hello"))));
      await ctx.waitForSignal("more");
      return { first, more: await outcomeOf(session.say("again")), state: session.info.state };
    },
  }),
});

export const active = async (bench: Bench) => {
  await bench.turn(start("uses"));
  await bench.turn(claimed("s", held(1)), activated("s", held(1)));
  return bench.open("say");
};
export const lostError = { name: "SessionLostError", code: "session_lost", reason: "expired", epoch: 10 };
