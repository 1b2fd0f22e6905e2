import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { expect, it } from "vitest";
import { z } from "zod";
import { program } from "../../../services/cli/program.ts";
import { allSettings, configurationReference } from "../../../services/cli/reference/configuration.ts";
import { deploymentSettings } from "../../../services/deployment.ts";
import { packageDir } from "../../../services/version.ts";

const text = (path: string): string => readFileSync(join(packageDir(), path), "utf8");
const known = new Set(Object.values(allSettings).flatMap((shape) => Object.keys(shape)));

it("docs/configuration.md is what the schemas say; else run `npm run docs:config`", () => {
  expect(text("docs/configuration.md")).toBe(configurationReference());
});

it(".env.example names only what a service or compose.yaml reads", () => {
  const compose = text("compose.yaml");
  const names = [...text(".env.example").matchAll(/^#? ?([A-Z][A-Z0-9_]+)=/gm)].map(
    (match) => match[1] ?? "",
  );
  expect(names.length).toBeGreaterThan(10);
  const strangers = names.filter(
    (name) => !known.has(name) && !compose.includes(`\${${name}`) && !name.startsWith("COMPOSE_"),
  );
  expect(strangers).toEqual([]);
});

it("deploymentSettings are what compose.yaml reads, with its defaults", () => {
  const read = [...text("compose.yaml").matchAll(/\$\{(DEPLOY_\w+)(?::-([^$}]*))?/g)].map(
    ([, name = "", fallback = ""]) => [name, fallback],
  );
  const known = Object.entries(deploymentSettings).map(([name, schema]) => [
    name,
    schema instanceof z.ZodDefault ? String(schema.def.defaultValue) : "",
  ]);
  expect(Object.fromEntries(read)).toEqual(Object.fromEntries(known));
});

it.each(["provisioner", "orchestrator", "worker", "watcher", "gateway"])(
  "compose.yaml starts the %s with what `security init` would write for it",
  async (role) => {
    const out = join(mkdtempSync(join(tmpdir(), "holdfast-compose-")), "security");
    const stream = { write: () => true, isTTY: false };
    const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
    const init = ["security", "init", "--out", out, "--path", "/security", "--store-dir", "/data"];
    await program(cli).parseAsync(init, { from: "user" });
    const written = parseEnv(readFileSync(join(out, role, "env"), "utf8"));
    expect(Object.keys(written).length).toBeGreaterThan(2);
    const compose = text("compose.yaml");
    for (const [name, value] of Object.entries(written))
      expect(compose, `${name}=${value}`).toMatch(new RegExp(`${name}: (\\$\\{${name}:?-)?${value}[},\\s]`));
    const command = /security init (.+)$/m.exec(compose)?.[1] ?? "";
    expect(command).toContain("--if-missing --out /keys --path /security --store-dir /data");
    const service = role === "provisioner" ? "provision" : role;
    const [, block = ""] = new RegExp(`^  ${service}:\\n((?: {4}.*\\n|\\n)+)`, "m").exec(compose) ?? [];
    expect(block).toContain(`NATS_INBOX_PREFIX: _INBOX_${role}`);
    const keys = [...block.matchAll(/keys-([a-z]+)/g)].map((match) => match[1]);
    expect(keys, "its own key, and no other").toEqual([role]);
  },
);

it("NATS servers have nothing but a file as argument: a reload for new keys would take all else for a change", async () => {
  const out = join(mkdtempSync(join(tmpdir(), "holdfast-compose-")), "security");
  const stream = { write: () => true, isTTY: false };
  const cli = { env: {}, exitCode: 0 as const, stdout: stream, stderr: stream };
  await program(cli).parseAsync(["security", "init", "--out", out], { from: "user" });
  const override = readFileSync(join(out, "compose.override.yaml"), "utf8");
  const commands = (text("compose.yaml") + override).match(/nats-server .*$/gm) ?? [];
  expect(commands).toHaveLength(3);
  for (const command of commands) expect(command).toMatch(/^nats-server -c \S+$/);
});

it("compose.yaml gives services only settings they know, and .env.example has all it reads", () => {
  const compose = text("compose.yaml");
  const set = [...compose.matchAll(/^ +([A-Z][A-Z0-9_]+):/gm)].map((match) => match[1] ?? "");
  const others = ["VARIANT", "NVIDIA_DRIVER_CAPABILITIES"]; // of the build, of the container runtime
  expect(set.filter((name) => !known.has(name) && !others.includes(name))).toEqual([]);
  const example = text(".env.example");
  const read = [...compose.matchAll(/\$\{([A-Z][A-Z0-9_]+)/g)].map((match) => match[1] ?? "");
  expect(read.filter((name) => !example.includes(`${name}=`))).toEqual([]);
});
