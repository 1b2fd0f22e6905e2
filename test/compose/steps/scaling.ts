/** Four workers, and how soon the new ones are given sessions. */
import { z } from "zod";
import { until } from "../../support/processes/stack.ts";
import { check, ensure } from "../check.ts";
import type { Container } from "../project.ts";
import { newId, type Stage } from "../stage.ts";

const Visit = z.object({ host: z.string(), openedAt: z.number() });
type Visit = z.infer<typeof Visit>;

const visitEveryMs = 150;
/** Fewer than two workers can hold: none of them waits for the new ones. */
const mostOpen = 40;
const soonMs = 1000;

export async function scaleToFour(stage: Stage): Promise<void> {
  const { project, journal } = stage;
  const before = new Set((await project.containers("worker")).map(({ id }) => id));
  const visits = new Visits(stage);
  try {
    await until("sessions are open on the old workers", () => visits.count >= 4, 60_000);
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
    const delays = firsts.map(({ openedAt }, index) => openedAt - (started[index]?.readyAt ?? 0));
    journal.note(
      "from container start to ready",
      started.map(({ startedAt, readyAt }) => `${readyAt - startedAt} ms`).join(", "),
    );
    journal.note("from ready to the first session", delays.map((ms) => `${ms} ms`).join(", "));
    ensure(
      "new workers get sessions within a second of their start",
      delays.every((ms) => ms <= soonMs),
      delays,
    );
  } finally {
    await visits.stop();
  }
  journal.note("sessions opened meanwhile", visits.count);
}

/** A steady trickle of sessions, so that there always is one to be had; each stays until there are too many. */
class Visits {
  readonly #stage: Stage;
  readonly #going: Promise<void>;
  readonly #seen: Visit[] = [];
  #over = false;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#going = this.#go();
    // Thrown when it is stopped; until then no handler is attached.
    this.#going.catch(() => undefined);
  }

  /** Opened so far. */
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

  /** All leave; each has completed. */
  async stop(): Promise<void> {
    this.#over = true;
    await this.#going;
  }

  async #go(): Promise<void> {
    const { driver } = this.#stage;
    const staying: string[] = [];
    const left: Promise<void>[] = [];
    while (!this.#over || staying.length > 0) {
      const oldest = this.#over || staying.length > mostOpen ? staying.shift() : undefined;
      if (oldest !== undefined) await driver.signal(oldest, "leave", null, `leave-${oldest}`);
      if (this.#over) continue;
      const id = newId("visit");
      await driver.start(id, "visit", null);
      staying.push(id);
      const ended = this.#watch(id);
      ended.catch(() => undefined);
      left.push(ended);
      await new Promise((resolve) => setTimeout(resolve, visitEveryMs));
    }
    await Promise.all(left);
  }

  async #watch(id: string): Promise<void> {
    const { driver } = this.#stage;
    const opened = await until(
      `${id} is open`,
      async () => {
        const answer = await driver.status(id);
        return Visit.safeParse(answer?.customStatus).data;
      },
      60_000,
    );
    this.#seen.push(opened);
    check(`how ${id} ends`, (await driver.result(id, 180_000)).status, "completed");
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
