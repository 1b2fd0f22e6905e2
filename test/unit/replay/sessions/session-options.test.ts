import { expect, test } from "vitest";
import { defineSession } from "../../../../shared/definitions/index.ts";
import { Bench, scenario } from "../../../support/worlds/instance-bench.ts";
import { start } from "../../../support/worlds/instance-messages.ts";

import { config, flow, model, other } from "./model-flow.ts";

const bad = flow(async (ctx) => {
  const messages: string[] = [];
  const tries: (() => Promise<unknown>)[] = [
    () => ctx.openSession(model, { config: { size: "big" as never } }),
    () => ctx.openSession({ leaseTtl: 1500 }),
    () => ctx.openSession({ executionTimeout: "1s", creationTimeout: "5s" }),
    () => ctx.openSession({ executionTimeout: "1m", idleTimeout: "5m", creationTimeout: "1s" }),
    () => ctx.openSession({ onLost: "rebuild" }),
    () => ctx.openSession({ onLost: "restore" }),
    () => ctx.openSession(model, { config, onLost: "restore" }),
    () => ctx.openSession({ creationTimeout: 0 }),
    () => ctx.recreateSession("rubbish"),
    () => ctx.openSession({ metadata: { "": "nameless" } }),
    () => ctx.openSession({ metadata: { "holdfast-key": "of somebody else" } }),
    () => ctx.openSession({ placement: { tag: ["gpu"] } as never }),
    () => ctx.openSession({ recovery: { maxAutoRetry: 1 } as never }),
  ];
  for (const attempt of tries)
    await attempt().catch((error) => messages.push(`${error.code}: ${error.message}`));
  return messages;
});

scenario("bad options are refused by name, and nothing is opened", bad, async (bench) => {
  await bench.turn(start("flow"));
  expect(bench.output).toMatchObject([
    expect.stringMatching(/^invalid_config: config of session "model": size/),
    "invalid_option: leaseTtl must be whole seconds, at least 1 s, not 1500 ms",
    expect.stringMatching(/executionTimeout .* creationTimeout/),
    expect.stringMatching(/idleTimeout .* executionTimeout/),
    expect.stringMatching(/"rebuild" needs recovery.rebuild/),
    expect.stringMatching(/"restore" needs a session type/),
    expect.stringMatching(/"restore" needs checkpoint and restore on session "model"/),
    expect.stringMatching(/creationTimeout must be at least 1 ms/),
    "invalid_token: the token is not one made by session.token()",
    expect.stringMatching(/^invalid_metadata: .* must have 1 to 128 characters/),
    expect.stringMatching(/^invalid_metadata: .* is reserved for the engine/),
    'invalid_option: placement has no option "tag"; did you mean "tags"?',
    'invalid_option: recovery has no option "maxAutoRetry"; did you mean "maxAutoRetries"?',
  ]);
  expect(bench.kinds).toEqual(["instance.started", "instance.completed"]);
});

scenario(
  "a short life shortens the time to be created, where nobody gave one",
  flow((ctx) => ctx.openSession({ executionTimeout: "10s" }).then(() => "opened")),
  async (bench) => {
    await bench.turn(start("flow"));
    expect(bench.last("session.opened").options).toMatchObject({
      executionTimeoutMs: 10_000,
      creationTimeoutMs: 10_000,
    });
  },
);

test.each([
  [
    { executionTimeout: "1m", idleTimeout: "5m" },
    /"m": idleTimeout \(300000 ms\).*executionTimeout \(60000 ms\)/,
  ],
  [
    { executionTimeout: "1s", creationTimeout: "5s" },
    /"m": creationTimeout \(5000 ms\).*executionTimeout \(1000 ms\)/,
  ],
  [{ idleTimeout: "soon" as "1s" }, /idleTimeout of session "m": "soon" is not a duration/],
] as const)("a type that contradicts itself is refused where it is defined: %j", (options, message) => {
  expect(() => defineSession("m", { ...options, init: () => 0, calls: {} })).toThrow(message);
});

test.each([
  ["as many as slots by default", {}, "slots"],
  ["as many as were asked for", { concurrency: 3 }, 3],
  ["in order", { concurrency: 1 }, 1],
] as const)("activities of a bare session: %s", async (_what, options, concurrency) => {
  const bench = new Bench(
    flow((ctx) => ctx.openSession(options)),
    "live",
  );
  const { effects } = await bench.turn(start("flow"));
  expect(effects.at(-1)).toMatchObject({ kind: "claim", session: { options: { concurrency } } });
});

test("concurrency is refused for a type, which says it itself, and where it is no number of calls", async () => {
  const typed = new Bench(
    flow((ctx) => ctx.openSession(other, { concurrency: 2 })),
    "live",
  );
  await typed.turn(start("flow"));
  expect(typed.state).toMatchObject({ status: "failed", error: { code: "invalid_option" } });
  for (const concurrency of [0, 1.5]) {
    const wrong = new Bench(
      flow((ctx) => ctx.openSession({ concurrency })),
      "live",
    );
    await wrong.turn(start("flow"));
    expect(wrong.state.error?.message).toContain("concurrency must be a whole number of at least 1");
  }
});
