/** The direction of imports (docs/architecture.md). A new folder must find its place here before it can be used. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Folder → folders it may import. Every folder may import itself. */
const allowed: Record<string, string[]> = {
  schemas: [],
  "shared/errors": ["schemas"],
  "shared/runtime": ["schemas", "shared/errors"],
  "shared/definitions": ["schemas", "shared/errors", "shared/runtime"],
  "shared/bus": ["schemas", "shared/errors", "shared/runtime"],
  "shared/fleet": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/history": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/leases": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/sessions": ["schemas", "shared/errors", "shared/runtime", "shared/bus", "shared/leases"],
  "shared/schedules": ["schemas", "shared/errors", "shared/runtime"],
  "shared/replay": ["schemas", "shared/errors", "shared/runtime", "shared/definitions"],
  "shared/inference": ["schemas", "shared/errors", "shared/runtime", "shared/definitions"],
  "shared/sdk": [
    "schemas",
    "shared/errors",
    "shared/runtime",
    "shared/definitions",
    "shared/bus",
    "shared/fleet",
    "shared/history",
    "shared/sessions",
    "shared/replay",
    "shared/schedules",
    "shared/leases",
  ],
  "shared/telemetry": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/app-loading": ["schemas", "shared/errors", "shared/runtime", "shared/definitions", "shared/sdk"],
  "shared/embedded-nats": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/endpoints": ["schemas", "shared/errors", "shared/runtime", "shared/bus", "shared/sdk"],
};
const library = ["schemas", ...Object.keys(allowed)];
/** The kit for tests runs whole services in one process; nothing that is served may load it. */
const testing = "shared/testing";
/** A service sees the library and the few files beside the services, never another service. */
const besideServices = /^services\/[a-z-]+\.ts$/;

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(
      (entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.parentPath.includes("/dashboard"),
    )
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

const importPattern = /(?:from|import)\s*\(?\s*"([^"]+)"/g;

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(importPattern)].map((match) => match[1] ?? "");
}

const folderOf = (file: string): string => {
  const [top, second] = file.split("/");
  if (top === "schemas") return "schemas";
  return top === "services" && besideServices.test(file) ? "services" : `${top}/${second}`;
};

test("imports follow the arrows", () => {
  const wrong: string[] = [];
  for (const file of ["schemas", "shared", "services"].flatMap(sources)) {
    const from = folderOf(file);
    for (const specifier of importsOf(file).filter((name) => name.startsWith("."))) {
      const target = relative(root, resolve(root, dirname(file), specifier));
      const to = folderOf(target);
      if (to === from) continue;
      const may = from.startsWith("services") ? [...library, "services"] : (allowed[from] ?? []);
      if (from === testing) continue;
      const lazily = from === "services/cli" && /^services\/([a-z]+)\/(main|run-\1)\.ts$/.test(target);
      // The reference of all settings.
      const reads =
        /^services\/cli\/reference\/configuration\.ts$/.test(file) && /\/(settings|config)\.ts$/.test(target);
      if (!may.includes(to) && !lazily && !reads) wrong.push(`${file} imports ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("only shared/bus knows the NATS client", () => {
  const wrong = ["schemas", "shared", "services"]
    .flatMap(sources)
    .filter(
      (file) =>
        !file.startsWith("shared/bus/") && importsOf(file).some((name) => name.startsWith("@nats-io/")),
    );
  expect(wrong).toEqual([]);
});

test("the library reads no environment and starts nothing at import", () => {
  const wrong = ["schemas", "shared"]
    .flatMap(sources)
    // The embedded server is a process, found on PATH.
    .filter((file) => !file.startsWith("shared/embedded-nats/"))
    // A client that was told no address looks for one, when it connects.
    .filter((file) => file !== "shared/sdk/where/where-to-connect.ts")
    .filter((file) => /process\.env|process\.exit/.test(readFileSync(join(root, file), "utf8")));
  expect(wrong).toEqual([]);
});

/** Every file of the product, with the files it loads. */
function graph(): Map<string, string[]> {
  const files = ["schemas", "shared", "services"].flatMap(allSources);
  return new Map(
    files.map((file) => [
      file,
      // Types are gone when the code runs, and what is loaded later, when it is needed, closes no circle either.
      [
        ...readFileSync(join(root, file), "utf8").matchAll(
          /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"(\.[^"]+)"/gm,
        ),
      ]
        .map((match) => match[1] ?? "")
        .map((name) => relative(root, resolve(root, dirname(file), name))),
    ]),
  );
}

/** Handles make each other (a session of a pool, a pool of a context). This list may only get shorter. */
const knownCycles = "shared/replay/handles/";

test("no file imports itself by way of others", () => {
  const imports = graph();
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) cycles.push(path.slice(at).toSorted());
    if (at >= 0 || done.has(file)) return;
    for (const next of imports.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  const unknown = cycles.filter((cycle) => !cycle.some((file) => file.startsWith(knownCycles)));
  expect(unknown.map((cycle) => cycle.join(" → "))).toEqual([]);
});

function allSources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}
