/** NATS restarts and dies under load: what was acknowledged is done. */
import { until } from "../../support/processes/stack.ts";
import { check, ensure } from "../check.ts";
import { newId, type Stage } from "../stage.ts";
import { hold } from "./sessions.ts";

const steps = 5;
const startEveryMs = 100;

/** Keeps starting instances, before, while and after something happens; each is acknowledged, each must complete. */
async function underLoad(stage: Stage, happen: () => Promise<void>): Promise<string> {
  const { driver } = stage;
  const ids: string[] = [];
  let over = false;
  let gapMs = 0;
  const starting = (async () => {
    let last = performance.now();
    while (!over) {
      const id = newId("walk");
      await driver.start(id, "walk", { steps });
      gapMs = Math.max(gapMs, performance.now() - last);
      last = performance.now();
      ids.push(id);
      await new Promise((resolve) => setTimeout(resolve, startEveryMs));
    }
  })();
  // Thrown below; meanwhile no handler is attached.
  starting.catch(() => undefined);
  try {
    await Promise.race([starting, until("some are started", () => ids.length >= 10)]);
    await happen();
    const before = ids.length;
    await Promise.race([starting, until("more are started", () => ids.length >= before + 10, 120_000)]);
  } finally {
    over = true;
    await starting;
  }
  for (const id of ids) {
    const { status, output } = await driver.result(id, 180_000);
    check(`the result of ${id}`, [status, output], ["completed", steps]);
  }
  return `${ids.length} instances acknowledged, all of them completed; longest gap between starts ${Math.round(gapMs)} ms`;
}

const noDeadLetters = async ({ driver }: Stage) =>
  check("dead letters", (await driver.stream("DEAD")).state.messages, 0);

/** A session that is held before and after: the same, with its memory. */
async function keepingASession(stage: Stage, leaseTtl: number, act: () => Promise<void>): Promise<void> {
  const held = await hold(stage, "fail", leaseTtl);
  await held.add();
  await act();
  const after = await held.add();
  ensure(
    "the session was kept, with its memory",
    after !== undefined && "count" in after && after.count === 2,
    after,
  );
  await held.end();
  stage.journal.note(
    `a session held all the while, lease of ${leaseTtl / 1000} s`,
    "the same, with its memory",
  );
  await noDeadLetters(stage);
}

export async function restartNats(stage: Stage): Promise<void> {
  const { project, journal } = stage;
  // Shorter than an outage may be: its holder takes it up again (S14).
  await keepingASession(stage, 3_000, async () => {
    const restarted = await underLoad(stage, async () => {
      await project.compose("restart", "nats");
    });
    journal.note("restarted", restarted);
    const killed = await underLoad(stage, async () => {
      await project.compose("kill", "-s", "KILL", "nats");
      await project.compose("up", "-d", "--no-build", "--no-recreate", "nats");
    });
    journal.note("killed and started", killed);
  });
  await project.healthy();
}

export async function checkCluster(stage: Stage): Promise<void> {
  const { driver, journal } = stage;
  const streams = await driver.streams();
  const fewer = streams.filter(({ config }) => config.num_replicas !== 3).map(({ config }) => config.name);
  check("streams and buckets that are not stored three times", fewer, []);
  journal.note("streams and buckets stored three times", streams.length);
}

/** What everything goes through. */
const core = ["INBOX", "ACTIVITIES", "CLAIMS", "SESSIONS", "KV_leases", "KV_instances", "DEAD"];

/** The servers that lead what everything depends on, one after the other. */
export async function killLeaders(stage: Stage): Promise<void> {
  // The default: longer than the change of a leader takes (S7).
  await keepingASession(stage, 15_000, async () => {
    await killLeader(stage, "INBOX");
    await killLeader(stage, "KV_leases");
  });
}

async function killLeader(stage: Stage, stream: string): Promise<void> {
  const { project, driver, journal } = stage;
  const leader = (await driver.stream(stream)).cluster?.leader ?? "";
  const service = leader === "nats-1" ? "nats" : leader;
  const seen = await underLoad(stage, async () => {
    await project.compose("kill", "-s", "KILL", service);
  });
  journal.note(`killed ${leader}, leader of ${stream}`, seen);
  const since = performance.now();
  await project.compose("up", "-d", "--no-build", "--no-recreate", service);
  await until(
    `${leader} has caught up`,
    async () =>
      (await Promise.all(core.map((name) => driver.stream(name)))).every(
        ({ cluster }) =>
          cluster?.leader !== undefined &&
          cluster.replicas?.length === 2 &&
          cluster.replicas.every(({ current }) => current),
      ),
    180_000,
  );
  journal.note(
    `${leader} has everything again`,
    `${((performance.now() - since) / 1000).toFixed(1)} s after its start`,
  );
}
