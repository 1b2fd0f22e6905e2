import { expect } from "vitest";
import { z } from "zod";
import {
  call,
  defineActivity,
  defineOrchestration,
  defineSession,
  defineSignal,
} from "../../../shared/definitions/index.ts";
import { scenario } from "../../support/worlds/instance-bench.ts";
import { signal, start } from "../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 1 });
const model = defineSession("model", { init: () => 1, calls: { ask: call({ run: async () => 1 }) } });

const misspelt = defineOrchestration("misspelt", {
  async run(ctx) {
    const attempts = [
      () => ctx.openSession(model, { onLsot: "reclaim" } as never),
      () => ctx.usePool(model, { mx: 3 } as never),
      () => ctx.run(work, undefined, { startToClos: "1s" } as never),
      () => ctx.run(work, undefined, { retry: { maxAtempts: 1 } } as never),
      () => ctx.child("other", undefined, { grants: [] } as never),
    ];
    const messages: string[] = [];
    for (const attempt of attempts)
      messages.push(await attempt().then(String, (error: Error) => error.message));
    return messages;
  },
});

scenario(
  "a misspelt option is refused by name, with the nearest right one",
  { work, model, misspelt },
  async (bench) => {
    await bench.turn(start("misspelt"));
    expect(bench.output).toEqual([
      'openSession("model") has no option "onLsot"; did you mean "onLost"?',
      'usePool("model") has no option "mx"; did you mean "max"?',
      'options of "work" has no option "startToClos"; did you mean "startToClose"?',
      'retry of "work" has no option "maxAtempts"; did you mean "maxAttempts"?',
      'options of child "other" has no option "grants"; did you mean "grant"?',
    ]);
  },
);

const approved = defineSignal("approved", { payload: z.object({ by: z.string() }) });
const checked = defineOrchestration("checked", {
  async run(ctx) {
    const error = await ctx.waitForSignal(approved).catch((thrown: { code: string }) => thrown.code);
    return [error, await ctx.waitForSignal(approved)];
  },
});

scenario("the payload of a defined signal is checked where it is received", { checked }, async (bench) => {
  await bench.turn(start("checked"));
  await bench.turn(signal("approved", { by: 7 }), signal("approved", { by: "ann" }));
  expect(bench.output).toEqual(["invalid_signal", { by: "ann" }]);
});
