/** `npm run test:compose [-- --record | --kit]`; `--kit`: the testing kit alone. Exits with 0, with 1 where something is wrong, with 77 where there is no engine. */
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from "node:os";
import { join } from "node:path";
import { packageDir } from "../../services/version.ts";
import { Driver } from "./driver.ts";
import { findEngine } from "./engine/index.ts";
import { baseImages } from "./images/stand-ins.ts";
import { Journal } from "./journal.ts";
import { Project } from "./project.ts";
import { type Ground, imageName, type Stage } from "./stage.ts";
import { checkHardening, refuseSettings, runDemo } from "./steps/demo.ts";
import { checkGpuProfile } from "./steps/gpu.ts";
import { buildImages } from "./steps/images.ts";
import { checkCluster, killLeaders, restartNats } from "./steps/nats.ts";
import { buildApplication, mountApplication } from "./steps/own-application.ts";
import { scaleToFour } from "./steps/scaling.ts";
import { changeKeys, checkSecrets } from "./steps/security.ts";
import { crashAWorker, killTheHolder, stopAWorker } from "./steps/sessions.ts";
import { sayWhyNot, testInAContainer } from "./steps/testing-kit.ts";

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

/** A project up, a driver on it; whatever happens, all of it is taken down, and a failure shows the last logs. */
async function withStage(
  ground: Ground,
  options: { name: string; env: Record<string, string>; profiles?: string[] },
  act: (stage: Stage) => Promise<void>,
): Promise<void> {
  const { engine, images, journal, folder } = ground;
  const project = await Project.create(engine, {
    ...options,
    env: { DEPLOY_IMAGE: imageName, DEPLOY_NATS_IMAGE: images.nats, ...options.env },
    folder,
    override: {},
  });
  try {
    await journal.step(`Up: ${options.name}`, async () => {
      const since = performance.now();
      await project.up();
      journal.note("every container healthy after", `${((performance.now() - since) / 1000).toFixed(1)} s`);
    });
    const clustered = options.profiles?.includes("cluster") ?? false;
    await using driver = await Driver.connect(
      clustered ? project.ports.nats : project.ports.nats.slice(0, 1),
      (role) => project.keyOf(role),
    );
    await act({ ...ground, project, driver });
  } catch (error) {
    say(await project.logs());
    throw error;
  } finally {
    await journal.step(`Down: ${options.name}`, () => project[Symbol.asyncDispose]());
  }
}

async function runKit(ground: Ground): Promise<void> {
  const { journal } = ground;
  await journal.step("Run a test of the testing kit on a container", () => testInAContainer(ground));
  await journal.step("Say why a container cannot be had", () => sayWhyNot(ground));
}

async function run(ground: Ground): Promise<void> {
  const { journal } = ground;
  await runKit(ground);
  await journal.step("Build the images", () => buildImages(ground));
  await withStage(ground, { name: "holdfast-test", env: {} }, async (stage) => {
    await journal.step("Run the examples through NATS subjects", () => runDemo(stage));
    await journal.step("Look at the containers", () => checkHardening(stage));
    await journal.step("Look for secrets, and knock without a key", () => checkSecrets(stage));
    await journal.step("Refuse wrong settings", () => refuseSettings(stage));
    await journal.step("Look at the profile gpu", () => checkGpuProfile(stage));
    await journal.step("Mount an application", () => mountApplication(stage));
    await journal.step("Scale workers to four", () => scaleToFour(stage));
    await journal.step("Kill the container that holds a session", () => killTheHolder(stage));
    await journal.step("Crash a worker", () => crashAWorker(stage));
    await journal.step("Stop a worker that works", () => stopAWorker(stage));
    await journal.step("Restart NATS under load", () => restartNats(stage));
    await journal.step("Change every key", () => changeKeys(stage));
    await journal.step("Build an application on top", () => buildApplication(stage));
  });
  const env = { NATS_REPLICAS: "3", DEPLOY_APP_DIR: ground.appDir };
  await withStage(ground, { name: "holdfast-test-cluster", env, profiles: ["cluster"] }, async (stage) => {
    await journal.step("Look at the cluster", () => checkCluster(stage));
    await journal.step("Kill leaders under load", () => killLeaders(stage));
  });
}

/** Other users of the machine influence the figures. */
function machine(): string {
  const [, , load = 0] = loadavg();
  return [
    `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"})`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `${type()} ${release()}`,
    `load average over the last 15 minutes ${load.toFixed(1)}`,
  ].join(", ");
}

async function main(args: readonly string[]): Promise<number> {
  const found = await findEngine({ mayFetch: process.env.COMPOSE_TEST_FETCH !== "no", say });
  if (found.kind === "none") {
    say(["no Docker engine with compose v2 can be had:", ...found.reasons].join("\n  "));
    return 77;
  }
  await using engine = found.engine;
  say(engine.description);
  const folder = await mkdtemp(join(tmpdir(), "holdfast-compose-"));
  try {
    const appDir = join(folder, "my-app");
    await cp(join(packageDir(), "test/compose/app"), appDir, { recursive: true });
    const journal = new Journal(say);
    if (args.includes("--kit")) {
      const images = await baseImages(engine, say, ["nats"]);
      await runKit({ engine, images, journal, folder, appDir });
      return 0;
    }
    const images = await baseImages(engine, say);
    await run({ engine, images, journal, folder, appDir });
    if (args.includes("--record")) {
      const facts = [
        { what: "when", value: `${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC` },
        { what: "engine", value: engine.description },
        { what: "base images", value: images.description },
        { what: "machine", value: machine() },
        { what: "result", value: `all ${journal.entries.length} steps passed` },
      ];
      await writeFile(join(packageDir(), "docs/compose-test.md"), journal.markdown(facts));
    }
    return 0;
  } catch (error) {
    say(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

process.exitCode = await main(process.argv.slice(2));
