/** NATS restarts and dies under load: what was acknowledged is done. */
import { until } from "../../support/stack.ts";
import { check, ensure } from "../check.ts";
import { newId, type Stage } from "../stage.ts";
import { hold } from "./sessions.ts";

const steps = 20;

/** Keeps starting instances, before, while and after something happens; each is acknowledged, each must complete. */
async function underLoad(
  stage: Stage,
  happen: () => Promise<void>,
): Promise<{ ids: string[]; gapMs: number }> {
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
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  await until("some are started", async () => ids.length >= 10);
  await happen();
  const before = ids.length;
  await until("more are started", async () => ids.length >= before + 10, 120_000);
  over = true;
  await starting;
  for (const id of ids) {
    const { status, output } = await driver.result(id, 180_000);
    check(`the result of ${id}`, [status, output], ["completed", steps]);
  }
  return { ids, gapMs: Math.round(gapMs) };
}

const noDeadLetters = async ({ driver }: Stage) =>
  check("dead letters", (await driver.stream("DEAD")).state.messages, 0);

export async function restartNats(stage: Stage): Promise<void> {
  const { project, journal } = stage;
  const held = await hold(stage, "fail");
  await held.add();
  const restarted = await underLoad(stage, async () => {
    await project.compose("restart", "nats");
  });
  journal.note(
    "restarted",
    `${restarted.ids.length} instances acknowledged, ${restarted.ids.length} completed, longest gap between starts ${restarted.gapMs} ms`,
  );
  const killed = await underLoad(stage, async () => {
    await project.compose("kill", "-s", "KILL", "nats");
    await project.compose("up", "-d", "--no-build", "--no-recreate", "nats");
  });
  journal.note(
    "killed and started",
    `${killed.ids.length} instances acknowledged, ${killed.ids.length} completed, longest gap between starts ${killed.gapMs} ms`,
  );
  const after = await held.add();
  ensure(
    "the session was kept, with its memory",
    after !== undefined && "count" in after && after.count === 2,
    after,
  );
  await held.end();
  await noDeadLetters(stage);
  await project.healthy();
}

export async function checkCluster(stage: Stage): Promise<void> {
  const { driver, journal } = stage;
  const streams = await driver.streams();
  const fewer = streams.filter(({ config }) => config.num_replicas !== 3).map(({ config }) => config.name);
  check("streams and buckets that are not stored three times", fewer, []);
  journal.note("streams and buckets stored three times", streams.length);
}

export async function killTheLeader(stage: Stage): Promise<void> {
  const { project, driver, journal } = stage;
  const leader = (await driver.stream("INBOX")).cluster?.leader ?? "";
  const service = leader === "nats-1" ? "nats" : leader;
  const { ids, gapMs } = await underLoad(stage, async () => {
    await project.compose("kill", "-s", "KILL", service);
  });
  journal.note(
    `killed ${leader}, leader of INBOX`,
    `${ids.length} instances acknowledged, ${ids.length} completed, longest gap between starts ${gapMs} ms`,
  );
  await project.compose("up", "-d", "--no-build", "--no-recreate", service);
  const caughtUp = await until(
    "the killed server has caught up",
    async () => {
      const { cluster } = await driver.stream("INBOX");
      return cluster?.leader !== undefined && cluster.replicas?.every(({ current }) => current);
    },
    120_000,
  );
  check("all three have everything again", caughtUp, true);
  await noDeadLetters(stage);
}
