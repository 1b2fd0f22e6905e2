import { expect } from "vitest";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
} from "../../../../shared/definitions/index.ts";
import { scenario } from "../../../support/worlds/instance-bench.ts";
import { activated, completed, held, lost, spent, start } from "../../../support/worlds/instance-messages.ts";

const load = defineActivity("load", { run: async () => 0 });
const chat = defineSession("chat", { init: () => ({}), calls: { say: call({ run: () => 0 }) } });
const opens = defineOrchestration("opens", {
  async run(ctx) {
    const recovery = { rebuild: { activity: load } };
    const session = await ctx.openSession(chat, { id: "s", recovery });
    return await session.say(undefined);
  },
});
const app = { load, chat, opens };

scenario("defect 38: a session goes on behind the attachments its id had before", app, async (bench) => {
  await bench.turn(start("opens"));
  const deadlineAt = bench.now + 30_000;
  const { events, effects } = await bench.turn(spent("s", 1, 7));
  expect(events).toMatchObject([{ kind: "session.requested", attachment: 8, deadlineAt }]);
  expect(effects).toContainEqual(expect.objectContaining({ kind: "claim", attachment: 8 }));
  // Twice, late, and for what came before: nothing.
  const { verdicts } = await bench.turn(spent("s", 1, 7), spent("s", 8, 3), activated("s", held(1)));
  expect(verdicts).toEqual(["fenced", "fenced", "fenced"]);
  await bench.turn(activated("s", held(8)));
  expect(bench.open("load"), "nothing to rebuild: its first state").toEqual([]);
  expect((await bench.turn(spent("s", 8, 20), lost("s", { attachment: 7 }))).verdicts).toEqual([
    "fenced",
    "fenced",
  ]);
  await bench.turn(completed(bench.task("say"), 1, { epoch: 80 }));
  expect(bench.output).toBe(1);
});

const reopens = {
  ...app,
  opens: defineOrchestration("opens", {
    async run(ctx) {
      const recovery = { rebuild: { activity: load } };
      const first = await ctx.openSession(chat, { id: "s", recovery });
      await first.close();
      const second = await ctx.openSession(chat, { id: "s", recovery });
      return second.info.attachment;
    },
  }),
};

scenario("a session opened again under its id has nothing to rebuild either", reopens, async (bench) => {
  await bench.turn(start("opens"));
  await bench.turn(activated("s", held(1)));
  await bench.turn(activated("s", held(2)));
  expect(bench.open("load")).toEqual([]);
  expect(bench.output).toBe(2);
});
