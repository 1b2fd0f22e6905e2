/** `testEnvironment({ nats: "container" })` as a user has it: a test in a process of its own, its server in a container. */
import { join } from "node:path";
import { packageDir } from "../../../services/version.ts";
import { check } from "../check.ts";
import { command } from "../command.ts";
import { docker } from "../engine/index.ts";
import type { Ground } from "../stage.ts";

export async function testInAContainer({ engine, images, journal }: Ground): Promise<void> {
  if (engine.buildNetwork === "host") {
    journal.note("left out", "this engine has no network on which a container could publish a port");
    return;
  }
  const file = join(packageDir(), "test/support/runners/first.node-test.ts");
  const env = {
    ...engine.env,
    TEST_NATS: `container:${images.nats}`,
    // The reaper is an image of its own, which may not be had here; a test that ends well leaves nothing.
    TESTCONTAINERS_RYUK_DISABLED: "true",
  };
  const said = await command(process.execPath, ["--import", "tsx", "--test", file], {
    cwd: packageDir(),
    env,
  });
  check("tests that passed", /^# pass (\d+)$/m.exec(said)?.[1] ?? /ℹ pass (\d+)/.exec(said)?.[1], "2");
  const left = await docker(engine, "ps", "-aq", "--filter", `ancestor=${images.nats}`);
  check("containers that are left", left.trim(), "");
  journal.note("server", images.nats);
}
