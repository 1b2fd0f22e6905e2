/** A session type that counts, for tests of attachments. */
import { z } from "zod";
import { call, defineSession } from "../../../shared/definitions/index.ts";

let serial = 0;
/** An id of a session that no test of this file has used. */
export const fresh = (): string => `s${++serial}`;

/** The sessions of type `counter` that were shut down. */
export const shutdowns: string[] = [];
export const counter = defineSession("counter", {
  config: z.object({ from: z.number() }),
  init: (ctx, { from }) => ({ n: from, id: ctx.session.id, log: [] as string[] }),
  calls: {
    add: call({
      input: z.number(),
      output: z.number(),
      run: (state, by) => {
        state.n += by;
        return state.n;
      },
    }),
    bad: call({ output: z.number(), run: () => "text" as never }),
    whoami: call({
      run: (_state, _input, ctx) => ({
        id: ctx.session.id,
        epoch: ctx.session.epoch,
        attachment: ctx.session.attachment,
        metadata: ctx.session.metadata,
      }),
    }),
    weird: call({ run: () => ({ big: 10n }) }),
    giveUp: call({
      run: (_state, reason: string, ctx) => {
        ctx.session.abort(reason);
        return new Promise(() => undefined);
      },
    }),
  },
  snapshot: (state) => ({ n: state.n }),
  shutdown: (state) => {
    shutdowns.push(state.id);
  },
});
