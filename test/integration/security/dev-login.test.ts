/** A NATS password in the settings that `holdfast dev` is given: told to nobody who asks, and written down nowhere. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startNats } from "../../support/nats/nats-server.ts";
import { runCli, startDev } from "../../support/processes/cli.ts";

const password = "hunter2-and-some-more";

it("is in no output, argument, log, dev file or page", async () => {
  const extraConfig = `authorization { users = [{ user: ada, password: "${password}" }] }`;
  await using nats = await startNats({ extraConfig });
  const dataDir = mkdtempSync(join(tmpdir(), "holdfast-dev-login-"));
  const url = nats.url.replace("nats://", `nats://ada:${password}@`);
  const login = { NATS_USER: "ada", NATS_PASSWORD: password };
  const dev = await startDev(dataDir, { env: { NATS_URL: url, ...login } });
  const seen: Record<string, string> = {};
  try {
    const listed = await runCli(["list", "--data-dir", dataDir], { env: {} });
    seen["a command that was told no password"] = listed.stdout + listed.stderr;
    expect(listed.code, "and so cannot log in").not.toBe(0);
    expect(readFileSync(join(dataDir, "dev.json"), "utf8")).toContain(nats.url);
    for (const path of ["/", "/api/whoami", "/api/overview", "/api/services", "/api/workers", "/metrics"])
      seen[path] = await (await fetch(`${dev.ready.dashboard}${path}`)).text();
    for (const pid of [dev.pid, ...dev.allPids()])
      seen[`arguments of ${pid}`] = readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } finally {
    dev.signal("SIGINT");
    await dev.ended();
  }
  seen.stdout = dev.stdout();
  seen.stderr = dev.stderr();
  for (const file of readdirSync(dataDir, { recursive: true, withFileTypes: true }))
    if (file.isFile()) seen[file.name] = readFileSync(join(file.parentPath, file.name), "utf8");
  expect(Object.keys(seen).filter((name) => name.endsWith(".log")).length).toBeGreaterThan(3);
  for (const [where, text] of Object.entries(seen))
    expect(text.includes(password), `the password in: ${where}`).toBe(false);
  rmSync(dataDir, { recursive: true });
});
