/**
 * Any program in any world. Whatever happens, in whatever order and however often: the history obeys its laws, nothing
 * open is forgotten, replaying at every turn changes nothing, and once everybody behaves the instance ends.
 *
 * `HOLDFAST_SEED` and `HOLDFAST_RUNS` repeat and extend it.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Bench } from "../../support/worlds/instance-bench.ts";
import { AskedFor } from "../../support/worlds/instance-laws.ts";
import { appOf, programs, type Step } from "../../support/worlds/random-program.ts";
import { type Happened, RandomWorld, live as relive } from "../../support/worlds/random-world.ts";

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31);
const numRuns = Number(process.env.HOLDFAST_RUNS ?? 100);
const patience = 60;

class WatchedBench extends Bench {
  readonly #asked = new AskedFor();
  #known = 0;

  override async turn(...messages: Parameters<Bench["turn"]>): ReturnType<Bench["turn"]> {
    const turn = await super.turn(...messages);
    if (this.fault?.code !== "unknown_orchestration") expect(this.fault, "parked").toBeUndefined();
    for (const { execution, effects } of this.published.slice(this.#known))
      this.#asked.add(execution, effects);
    this.#known = this.published.length;
    this.#asked.check(this.state);
    return turn;
  }

  checkEnded(): void {
    if (this.state.execution === 1) this.#asked.checkEnded();
  }
}

async function live(program: Step[], choices: number[]): Promise<{ bench: WatchedBench; log: Happened[] }> {
  const app = appOf(program);
  const bench = new WatchedBench(app);
  const world = new RandomWorld(bench, app, choices);
  await world.begin();
  while (!world.exhausted && bench.state.status === "running") await world.step();
  for (let left = patience; left > 0 && bench.state.status === "running"; left--) await world.settle();
  expect(bench.state.status, "ends once everybody behaves").not.toBe("running");
  bench.checkEnded();
  return { bench, log: world.log };
}

async function again(program: Step[], log: readonly Happened[]): Promise<Bench> {
  const app = appOf(program);
  const bench = new Bench(app, "replay");
  for (const happened of log) await relive(bench, happened, app);
  return bench;
}

test("any program in any world", { timeout: 600_000 }, async () => {
  console.log(`HOLDFAST_SEED=${seed} HOLDFAST_RUNS=${numRuns}`);
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      programs,
      fc.array(fc.nat({ max: 9999 }), { maxLength: 300, size: "max" }),
      async (program, choices) => {
        const { bench, log } = await live(program, choices);
        const replayed = await again(program, log);
        expect(replayed.commits).toEqual(bench.commits);
        expect(replayed.effects).toEqual(bench.effects);
        for (const kind of bench.kinds) seen.set(kind, (seen.get(kind) ?? 0) + 1);
      },
    ),
    // Shrinking goes on for long; a failure is worth some minutes, not hours.
    { seed, numRuns, interruptAfterTimeLimit: 300_000 },
  );
  console.log([...seen].map(([kind, count]) => `${kind} ${count}`).join(", "));
});
