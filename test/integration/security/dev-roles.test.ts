/** `holdfast dev --roles`: every process of the engine has the NATS user of its role, and an orchestration runs with them. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeyAuthenticator } from "@nats-io/nats-core";
import { afterAll, expect, it } from "vitest";
import { connect } from "../../../shared/sdk/index.ts";
import { rawConnection } from "../../support/nats/raw-client.ts";
import { type Dev, runCli, startDev } from "../../support/processes/cli.ts";

const dataDir = mkdtempSync(join(tmpdir(), "holdfast-dev-roles-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const withRoles = {
  args: ["--app", join(import.meta.dirname, "../../support/apps/basics-and-cart.ts"), "--roles"],
};
const ended = async (dev: Dev) => {
  dev.signal("SIGINT");
  await dev.ended();
};

async function asWorker(dev: Dev) {
  const seed = readFileSync(join(dataDir, "security", "worker", "user.nk"));
  return await rawConnection({
    servers: dev.ready.natsUrl,
    authenticator: nkeyAuthenticator(seed.subarray(0, 58)),
    inboxPrefix: "_INBOX_worker",
  });
}

it("runs with a user for each role, keeps the keys and the instances, and leaves the port open to this machine", async () => {
  const first = await startDev(dataDir, withRoles);
  try {
    await using client = await connect({ url: first.ready.natsUrl });
    const handle = await client.start("hello", { name: "Ada" }, { id: "with-roles" });
    expect(await handle.result()).toBe("Hello, Ada!");
    await using worker = await asWorker(first);
    worker.nc.publish("orchestrations.with-roles.terminate", "{}");
    worker.nc.publish("orchestrations.with-roles.activity", "{}");
    await worker.nc.flush();
    await expect.poll(() => [...worker.refused]).toEqual(["orchestrations.with-roles.terminate"]);
  } finally {
    await ended(first);
  }
  const again = await startDev(dataDir, withRoles);
  try {
    await using client = await connect({ url: again.ready.natsUrl });
    expect(await client.get("with-roles").result()).toBe("Hello, Ada!");
    await using _worker = await asWorker(again);
  } finally {
    await ended(again);
  }
});

it("is refused where the server is another's", async () => {
  const env = { NATS_URL: "nats://127.0.0.1:1" };
  const { code, stderr } = await runCli(["dev", "--data-dir", dataDir, ...withRoles.args], { env });
  expect(code).toBe(2);
  expect(stderr).toContain("--roles: NATS_URL names a server");
});
