/** `testEnvironment({ nats: "container" })` as users have it: tests in a process of their own, the server in a container. */
import { join } from "node:path";
import { packageDir } from "../../../services/version.ts";
import { check } from "../check.ts";
import { command } from "../command.ts";
import { docker } from "../engine/index.ts";
import type { Ground } from "../stage.ts";

/** Like the official image without a shell: its entry point is the server, and a bare command would be its argument. */
const bareImage = "holdfast-test:bare-nats";

export async function testInAContainer(ground: Ground): Promise<void> {
  const { engine, images, journal } = ground;
  if (!engine.hasDefaultBridge) {
    journal.note("left out", "this engine has no network on which a container could publish a port");
    return;
  }
  for (const image of [images.nats, await makeBareImage(ground)]) {
    const since = performance.now();
    const passed = await runTests(ground, "first", { TEST_NATS: `container:${image}` });
    check(`tests that passed on ${image}`, passed, "3");
    journal.note(`on ${image}`, `3 tests in ${((performance.now() - since) / 1000).toFixed(1)} s`);
    const left = await docker(engine, "ps", "-aq", "--filter", `ancestor=${image}`);
    check("containers that are left", left.trim(), "");
  }
}

export async function sayWhyNot(ground: Ground): Promise<void> {
  const { engine, images, journal } = ground;
  const whys: Record<string, NodeJS.ProcessEnv> = {
    container_engine_missing: { TEST_NATS: "container", DOCKER_HOST: "tcp://127.0.0.1:1" },
    container_failed: { TEST_NATS: "container:holdfast-test:no-such-image" },
  };
  // No connection can be made to a multicast address, so nothing leaves the machine.
  if (engine.hasDefaultBridge)
    whys.container_unreachable = {
      TEST_NATS: `container:${images.nats}`,
      TESTCONTAINERS_HOST_OVERRIDE: "224.0.0.1",
    };
  for (const [code, env] of Object.entries(whys))
    check(code, await runTests(ground, "container-errors", { ...env, TEST_CODE: code }), "1");
  journal.note("said by its code", Object.keys(whys).join(", "));
}

async function makeBareImage({ engine, images }: Ground): Promise<string> {
  const container = (await docker(engine, "create", images.nats, "nats-server")).trim();
  const changes = ['ENTRYPOINT ["nats-server"]', 'CMD ["--config", "nats-server.conf"]'];
  const options = changes.flatMap((change) => ["--change", change]);
  await docker(engine, "commit", ...options, container, bareImage);
  await docker(engine, "rm", container);
  return bareImage;
}

/** How many tests of the file passed, as node:test counts them; throws if one failed. */
async function runTests(
  { engine }: Ground,
  file: "first" | "container-errors",
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const path = join(packageDir(), `test/support/runners/${file}.node-test.ts`);
  // The reaper is an image of its own, which may not be had here; a test that ends well leaves nothing.
  const all = { ...engine.env, TESTCONTAINERS_RYUK_DISABLED: "true", ...env };
  const reporter = "--test-reporter=tap";
  const said = await command(process.execPath, ["--import", "tsx", reporter, "--test", path], {
    cwd: packageDir(),
    env: all,
  });
  return /^# pass (\d+)$/m.exec(said)?.[1];
}
