import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { everyCommand, specOf } from "../../../services/cli/completion/command-tree.ts";
import { program } from "../../../services/cli/program.ts";
import { cliReference } from "../../../services/cli/reference/reference.ts";
import { shapeText } from "../../../services/cli/reference/shape-text.ts";
import { shapes } from "../../../services/cli/reference/shapes.ts";
import { packageDir } from "../../../services/version.ts";

const silence = { write: () => true };
const root = specOf(program({ env: {}, stdout: silence, stderr: silence, exitCode: 0 }));

it("docs/cli.md is what the commands say; else run `npm run docs:cli`", () => {
  expect(readFileSync(join(packageDir(), "docs/cli.md"), "utf8")).toBe(cliReference(root));
});

it("every command that prints JSON says of which shape, and no other", () => {
  const printing = everyCommand(root)
    .filter(({ options }) => options.some(({ long }) => long === "--json"))
    .map(({ path }) => path.join(" "));
  expect(Object.keys(shapes).sort()).toEqual(printing.sort());
});

it("everything that cannot be undone wants a yes", () => {
  const asking = everyCommand(root)
    .filter(({ options }) => options.some(({ long }) => long === "--yes"))
    .map(({ path }) => path.join(" "));
  expect(asking.sort()).toEqual(
    [
      "dead discard",
      "dead retry",
      "schedule delete",
      "start-again",
      "pools forget",
      "pools pause",
      "sessions close",
      "sessions drain",
      "sessions evict",
      "terminate",
      "workers drain",
    ].sort(),
  );
});

it("shapes are written as people read them", () => {
  const schema = z.strictObject({
    id: z.string(),
    n: z.int().optional(),
    kind: z.enum(["a", "b"]),
    list: z.array(z.union([z.string(), z.number()])),
    map: z.record(z.string(), z.boolean()),
    any: z.unknown().optional(),
  });
  expect(shapeText(schema)).toBe(
    '{ id: string, n?: number, kind: "a" | "b", list: (string | number)[], map: { [name]: boolean }, any?: any }',
  );
  expect(shapeText(z.array(schema), new Map([[schema, "Thing"]]))).toBe("Thing[]");
});

/** Relative imports that are followed when a module is loaded: not those of types, not those asked for later. */
function loadedBy(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const pattern = /^(?:import|export)\s+(?!type\b)(?:[^"]*?\sfrom\s+)?"([^"]+)"/gm;
  return [...text.matchAll(pattern)]
    .filter(
      ([statement]) =>
        !/^(?:import|export)\s+\{(?:\s*type\s+\w+(?:\s+as\s+\w+)?,?)+\s*\}\s+from/.test(statement),
    )
    .map((match) => match[1] ?? "");
}

it("starts without the engine: no schemas, no NATS, before a command needs them", () => {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const name of loadedBy(file)) {
      if (name.startsWith(".")) visit(resolve(dirname(file), name));
      else if (!name.startsWith("node:")) packages.add(name);
    }
  };
  visit(join(packageDir(), "services/cli/main.ts"));
  expect([...packages]).toEqual(["commander"]);
  const folders = new Set(
    [...seen].map((file) => relative(packageDir(), dirname(file)).split("/").slice(0, 2).join("/")),
  );
  expect([...folders].sort()).toEqual([
    "services",
    "services/cli",
    "shared/errors",
    "shared/runtime",
    "shared/wording",
  ]);
});
