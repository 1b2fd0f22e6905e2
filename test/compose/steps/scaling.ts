/** Four workers, and how soon the new ones are given sessions. */
import { z } from "zod";
import { until } from "../../support/stack.ts";
import { check, ensure } from "../check.ts";
import type { Container } from "../project.ts";
import { newId, type Stage } from "../stage.ts";

const Visit = z.object({ host: z.string(), openedAt: z.number() });
type Visit = z.infer<typeof Visit>;

/** Held all the while, so that the old workers have something to do and the new ones nothing. */
const staying = 8;
const visitEveryMs = 150;
const soonMs = 1000;

export async function scaleToFour(stage: Stage): Promise<void> {
  const { project, driver, journal } = stage;
  const before = new Set((await project.containers("worker")).map(({ id }) => id));
  const held = await Promise.all(Array.from({ length: staying }, () => visit(stage, true)));
  for (const id of held) {
    await until(
      `${id} is open`,
      async () => Visit.safeParse((await driver.status(id))?.customStatus).success,
    );
  }
  const visits = new Visits(stage);
  try {
    const scaled = performance.now();
    await project.compose("up", "-d", "--no-build", "--no-recreate", "--scale", "worker=4", "worker");
    const fresh = (await project.containers("worker")).filter(({ id }) => !before.has(id));
    check("new workers", fresh.length, 2);
    const started = await Promise.all(fresh.map((container) => startOf(stage, container)));
    journal.note(
      "four workers ready",
      `${Math.round(performance.now() - scaled)} ms after \`--scale worker=4\``,
    );
    const firsts = await Promise.all(fresh.map(({ host }) => visits.firstOn(host)));
    await visits.stop();
    const delays = firsts.map(({ openedAt }, index) => openedAt - (started[index]?.readyAt ?? 0));
    journal.note(
      "from container start to ready",
      started.map(({ startedAt, readyAt }) => `${readyAt - startedAt} ms`).join(", "),
    );
    journal.note("from ready to the first session", delays.map((ms) => `${ms} ms`).join(", "));
    journal.note("sessions opened meanwhile", visits.count);
    ensure(
      "new workers get sessions within a second of their start",
      delays.every((ms) => ms <= soonMs),
      delays,
    );
  } finally {
    await visits.stop();
  }
  await Promise.all(held.map((id) => driver.signal(id, "leave", null, `leave-${id}`)));
  for (const id of held) check(`how ${id} ends`, (await driver.result(id)).status, "completed");
}

async function visit({ driver }: Stage, stay: boolean): Promise<string> {
  const id = newId("visit");
  await driver.start(id, "visit", { stay });
  return id;
}

/** A steady trickle of short sessions, so that there always is one to be had. */
class Visits {
  readonly #stage: Stage;
  readonly #going: Promise<void>;
  readonly #seen: Visit[] = [];
  #over = false;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#going = this.#go();
    // Told to whoever stops it; until then nobody listens.
    this.#going.catch(() => undefined);
  }

  get count(): number {
    return this.#seen.length;
  }

  firstOn(host: string): Promise<Visit> {
    return until(
      `a session on ${host}`,
      () => this.#seen.filter((one) => one.host === host).sort((a, b) => a.openedAt - b.openedAt)[0],
      60_000,
    );
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#going;
  }

  async #go(): Promise<void> {
    const running: Promise<unknown>[] = [];
    while (!this.#over) {
      const id = await visit(this.#stage, false);
      const told = this.#stage.driver.result(id).then(({ output }) => this.#seen.push(Visit.parse(output)));
      told.catch(() => undefined);
      running.push(told);
      await new Promise((resolve) => setTimeout(resolve, visitEveryMs));
    }
    await Promise.all(running);
  }
}

/** When the container was started, and when the worker in it said that it is ready. */
async function startOf(
  { project }: Stage,
  { id }: Container,
): Promise<{ startedAt: number; readyAt: number }> {
  const inspected = await project.docker("inspect", "--format", "{{.State.StartedAt}}", id);
  const readyAt = await until(
    "the new worker says ready",
    async () => {
      const line = (await project.said(id)).split("\n").find((text) => text.includes('"message":"ready"'));
      return line === undefined ? undefined : Date.parse(JSON.parse(line).time);
    },
    120_000,
  );
  return { startedAt: Date.parse(inspected.trim()), readyAt };
}
