/** A worker dies at every named place of its life: claims, init, calls, activities, close. Everything finishes elsewhere. */
import { expect, test } from "vitest";
import { type WorkerFaultPoint, workerFaultPoints } from "../../../services/worker/fault-points.ts";
import { collectApp } from "../../../shared/definitions/index.ts";
import type { InstanceHandle } from "../../../shared/sdk/index.ts";
import { checkHistory } from "../../../shared/testing/history/history-laws.ts";
import { noFaults, someFaults } from "../../../shared/testing/memory/index.ts";
import { World } from "../../../shared/testing/world/world.ts";
import { expected, simulatedApp } from "../../apps/simulated.ts";

const size = 4;
const programs = ["sequence", "fan-out", "counted", "twins", "generations"];

interface Death {
  point: WorkerFaultPoint;
  count: number;
  seed: number;
  faulty: boolean;
}

async function live({ point, count, seed, faulty }: Death): Promise<boolean> {
  let world: World;
  const app = collectApp(simulatedApp(() => world));
  const faults = faulty ? someFaults : noFaults;
  world = new World({ seed, app, faults, alwaysReplay: seed % 2 === 1 });
  await world.prepare();
  await world.orchestrator();
  await world.watcher();
  let died = false;
  // Alone at first, so that it gets to where it dies.
  const onDeath = () => {
    died = true;
  };
  await world.worker({ point, count, onDeath });
  const handles = new Map<string, InstanceHandle>();
  for (const name of programs) handles.set(name, await world.start(name, size, name));
  await world.clock.advance(1000);
  await world.worker();
  for (const [name, handle] of handles) {
    const context = `${name}, ${JSON.stringify({ point, count, seed, faulty })}`;
    expect(await world.run(handle.result(), 3_600_000), context).toEqual(expected[name]?.(size));
    checkHistory((await world.history(name)) ?? []);
  }
  return died;
}

test.each(workerFaultPoints)(
  "a worker dies at %s",
  async (point) => {
    let deaths = 0;
    for (const [index, count] of [1, 2, 3].entries()) {
      for (const faulty of [false, true]) {
        if (await live({ point, count, seed: 300 + index, faulty })) deaths++;
      }
    }
    // Otherwise the run proved nothing.
    expect(deaths).toBeGreaterThanOrEqual(4);
  },
  120_000,
);
