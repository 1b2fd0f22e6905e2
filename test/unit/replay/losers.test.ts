/** Defect 51: a signal goes only to a waiter whose result can still be used, and what has lost does not go on. */
import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { Commit } from "../../../schemas/index.ts";
import {
  defineActivity,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { collecting, renewing, rounds } from "../../apps/losing.ts";
import { Bench, scenario } from "../../support/worlds/instance-bench.ts";
import { completed, failed, signal, start, wake } from "../../support/worlds/instance-messages.ts";

const work = defineActivity("work", { run: async () => 0 });
const flow = (run: (ctx: OrchestrationContext) => Promise<unknown>) => ({
  work,
  flow: defineOrchestration("flow", { run }),
});

const pauses = async (bench: Bench, count: number) => {
  for (let i = 0; i < count; i++) {
    bench.advance(150);
    await bench.turn(wake());
  }
};

for (const [how, round] of Object.entries(rounds)) {
  describe(`defect 51, ${how}`, () => {
    scenario(
      "every signal reaches the code, whatever lost before",
      { c: collecting(round) },
      async (bench) => {
        await bench.turn(start("collect"));
        await pauses(bench, 3);
        await bench.turn(signal("n", 1));
        await pauses(bench, 2);
        await bench.turn(signal("n", 2), signal("n", 3));
        bench.advance(150);
        await bench.turn(wake(), signal("n", 4));
        bench.advance(150);
        await bench.turn(signal("n", 5), wake());
        expect(bench.output).toEqual([1, 2, 3, 4, 5]);
      },
    );

    scenario("losing timers are called off", { c: collecting(round) }, async (bench) => {
      await bench.turn(start("collect"));
      await pauses(bench, 2);
      for (let n = 1; n < 5; n++) {
        await bench.turn(signal("n", n));
        expect(bench.state.timers.size).toBe(1);
      }
      expect(bench.kinds.filter((kind) => kind === "timer.cancelled")).toHaveLength(4);
    });

    scenario("continue-as-new behind it carries what nobody read", { c: renewing(round) }, async (bench) => {
      await bench.turn(start("collect", []));
      await pauses(bench, 2);
      await bench.turn(signal("n", 1), signal("n", 2));
      bench.advance(150);
      await bench.turn(wake(), signal("n", 3), signal("n", 4));
      await pauses(bench, 1);
      await bench.turn(signal("n", 5));
      expect(bench.output).toEqual([1, 2, 3, 4, 5]);
    });
  });
}

const shared = flow(async (ctx) => {
  const once = ctx.run(work, 0);
  const one = (async () => [await once, "one"])();
  const other = (async () => [await once, "other"])();
  const first = await Promise.race([one, ctx.sleep(1000).then(() => "late")]);
  return [first, await other];
});

scenario("what somebody else waits for goes on", shared, async (bench) => {
  await bench.turn(start("flow"));
  bench.advance(1500);
  await bench.turn(wake());
  expect(bench.kinds).not.toContain("activity.cancelled");
  await bench.turn(completed(bench.task("work"), "done"));
  expect(bench.output).toEqual(["late", ["done", "other"]]);
});

const kept = flow(async (ctx) => {
  const slow = ctx.shield((async () => await ctx.run(work, 0))());
  const seen: unknown[] = [];
  for (let i = 0; i < 3; i++) seen.push(await Promise.race([slow, ctx.sleep(1000).then(() => "tick")]));
  return [...seen, await slow];
});

scenario("what is shielded is there for the next race", kept, async (bench) => {
  await bench.turn(start("flow"));
  for (let i = 0; i < 2; i++) {
    bench.advance(1500);
    await bench.turn(wake());
  }
  await bench.turn(completed(bench.task("work"), "done"));
  expect(bench.output).toEqual(["tick", "tick", "done", "done"]);
});

const failing = flow(async (ctx) => {
  const helper = async () => await ctx.waitForSignal("go");
  const work1 = async () => await ctx.run(work, 0, { retry: { maxAttempts: 1 } });
  const error = await Promise.all([helper(), work1()]).catch((thrown: Error) => thrown.message);
  return [error, await ctx.waitForSignal("go")];
});

scenario("when one of all fails, the others give up what they wait for", failing, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(failed(bench.task("work"), { message: "broken" }));
  await bench.turn(signal("go", 1));
  expect(bench.output).toEqual([expect.stringContaining("broken"), 1]);
});

const tidy = flow(async (ctx) => {
  const careful = async () => {
    try {
      return await ctx.waitForSignal("go");
    } finally {
      await ctx.run(work, "clean up");
    }
  };
  const won = await Promise.race([careful(), ctx.sleep(1000).then(() => "late")]);
  return [won, await ctx.waitForSignal("go")];
});

scenario("a loser can clean up, and gets no signal for it", tidy, async (bench) => {
  await bench.turn(start("flow"));
  bench.advance(1500);
  await bench.turn(wake());
  await bench.turn(completed(bench.task("work")));
  await bench.turn(signal("go", 1));
  expect(bench.output).toEqual(["late", 1]);
});

const again = flow(async (ctx) => {
  const stubborn = async () => {
    for (let tries = 1; ; tries++) {
      try {
        return [tries, await ctx.waitForSignal("go")];
      } catch {
        // Waits again.
      }
    }
  };
  const waits = stubborn();
  const won = await Promise.race([waits, ctx.sleep(1000).then(() => "late")]);
  const mine = await ctx.waitForSignal("go");
  return [won, mine, await waits];
});

scenario("a loser that the code waits for again gets signals again", again, async (bench) => {
  await bench.turn(start("flow"));
  bench.advance(1500);
  await bench.turn(wake());
  await bench.turn(signal("go", 1), signal("go", 2));
  expect(bench.output).toEqual(["late", 1, [2, 2]]);
});

const aside = flow(async (ctx) => {
  const seen: unknown[] = [];
  void ctx.waitForSignal("note").then((value) => seen.push(value));
  const pump = async () => {
    for (;;) seen.push(await ctx.waitForSignal("more"));
  };
  void pump();
  await Promise.race([ctx.sleep(1000), ctx.waitForSignal("end")]);
  return seen;
});

scenario("code beside the race has lost nothing", aside, async (bench) => {
  await bench.turn(start("flow"));
  await bench.turn(signal("more", 1), signal("note", 2), signal("more", 3));
  await bench.turn(signal("end"));
  expect(bench.output).toEqual([1, 2, 3]);
});

const together = flow(async (ctx) => {
  await ctx.sleep(1000);
  const seen: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    const helper = async (name: string) => [name, await ctx.waitForSignal(name)];
    seen.push(await Promise.race([helper("left"), helper("right")]));
  }
  return seen;
});

scenario(
  "of two signals that are there, the race takes one and leaves the other",
  together,
  async (bench) => {
    await bench.turn(start("flow"), signal("right", 1), signal("left", 2), signal("right", 3));
    bench.advance(1500);
    await bench.turn(wake());
    expect(bench.output).toEqual([
      ["left", 2],
      ["right", 1],
      ["right", 3],
    ]);
  },
);

const returned = flow((ctx) => {
  const once = ctx.run(work, 0);
  void Promise.race([once.then(() => "done"), ctx.sleep(1000)]);
  return once.catch(() => "failed");
});

scenario(
  "what the code returned is waited for, also by a handler of failures alone",
  returned,
  async (bench) => {
    await bench.turn(start("flow"));
    bench.advance(1500);
    await bench.turn(wake());
    expect(bench.kinds).not.toContain("activity.cancelled");
    await bench.turn(completed(bench.task("work"), "done"));
    expect(bench.output).toBe("done");
  },
);

const sequence = flow(async (ctx) => [await ctx.run(work, 0), await ctx.waitForSignal("go")]);

test("code that waits for one thing after the other costs no look at the stack", async () => {
  const looks = vi.spyOn(Error, "captureStackTrace");
  try {
    const bench = new Bench(sequence);
    await bench.turn(start("flow"));
    await bench.turn(completed(bench.task("work"), "done"));
    await bench.turn(signal("go", 1));
    expect(bench.output).toEqual(["done", 1]);
    expect(looks).not.toHaveBeenCalled();
  } finally {
    looks.mockRestore();
  }
});

/** Written before rule 1 (\`instance.started.rules\`), with abandoned waiters that took signals and timers that went on. */
const before: Record<string, unknown[]> = JSON.parse(
  readFileSync(new URL("../../golden/before-rule-1.json", import.meta.url), "utf8"),
);

for (const [how, history] of Object.entries(before)) {
  test(`a history written before rule 1 is replayed by its own rules: ${how}`, async () => {
    const round = rounds[how];
    if (!round) throw new Error(`no program "${how}"`);
    const commits = history.map((commit) => Commit.parse(commit));
    const bench = new Bench({ c: collecting(round) });
    bench.commits.push(...commits);
    await bench.reload();
    expect(bench.fault).toBeUndefined();
    bench.now = (commits.at(-1)?.at ?? 0) + 1000;
    await bench.turn(wake(), signal("n", "next"));
    expect(bench.fault).toBeUndefined();
    await bench.reload();
    expect(bench.fault).toBeUndefined();
  });
}
