import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
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

it("compose.yaml gives services only settings they know, and .env.example has all it reads", () => {
  const compose = text("compose.yaml");
  const set = [...compose.matchAll(/^ +([A-Z][A-Z0-9_]+):/gm)].map((match) => match[1] ?? "");
  const others = ["VARIANT", "NVIDIA_DRIVER_CAPABILITIES"]; // of the build, of the container runtime
  expect(set.filter((name) => !known.has(name) && !others.includes(name))).toEqual([]);
  const example = text(".env.example");
  const read = [...compose.matchAll(/\$\{([A-Z][A-Z0-9_]+)/g)].map((match) => match[1] ?? "");
  expect(read.filter((name) => !example.includes(`${name}=`))).toEqual([]);
});
