/** The direction of imports (docs/architecture.md). A new folder must find its place here before it can be used. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { page, withGraph } from "../support/documents/import-graph.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Folder → folders it may import. Every folder may import itself. */
const allowed: Record<string, string[]> = {
  schemas: [],
  "shared/errors": ["schemas"],
  "shared/runtime": ["schemas", "shared/errors"],
  "shared/definitions": ["schemas", "shared/errors", "shared/runtime"],
  "shared/bus": ["schemas", "shared/errors", "shared/runtime"],
  "shared/capabilities": ["schemas"],
  "shared/fleet": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/history": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
  "shared/leases": ["schemas", "shared/errors", "shared/runtime", "shared/bus", "shared/capabilities"],
  "shared/sessions": [
    "schemas",
    "shared/errors",
    "shared/runtime",
    "shared/bus",
    "shared/leases",
    "shared/wording",
  ],
  "shared/wording": ["schemas"],
  "shared/timeline": ["schemas", "shared/wording"],
  "shared/problems": ["schemas", "shared/fleet", "shared/sessions", "shared/wording"],
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
  "shared/verify": [
    "schemas",
    "shared/errors",
    "shared/runtime",
    "shared/bus",
    "shared/history",
    "shared/leases",
    "shared/replay",
    "shared/sdk",
    "shared/definitions",
  ],
  "shared/security": ["schemas", "shared/errors", "shared/runtime", "shared/bus"],
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

test("headers have their names in one file, those of the wire contract in schemas", () => {
  const wrong = ["shared", "services"]
    .flatMap(sources)
    .filter((file) => file !== "shared/bus/delivery/header-names.ts")
    .filter((file) => /"(?:Holdfast|Nats|KV)-[A-Z][A-Za-z-]+"/.test(readFileSync(join(root, file), "utf8")));
  expect(wrong).toEqual([]);
});

test("the library reads no environment and starts nothing at import", () => {
  const wrong = ["schemas", "shared"]
    .flatMap(sources)
    // The embedded server is a process, found on PATH.
    .filter((file) => !file.startsWith("shared/embedded-nats/"))
    // A client without an address looks for one when it connects.
    .filter((file) => file !== "shared/sdk/where/where-to-connect.ts")
    .filter((file) => /process\.env|process\.exit/.test(readFileSync(join(root, file), "utf8")));
  expect(wrong).toEqual([]);
});

test("docs/architecture.md draws the imports there are; after a change: npm run docs:graph", () => {
  const text = readFileSync(page, "utf8");
  expect(withGraph(text)).toBe(text);
});

test("docs/walkthrough.md names files that are there", () => {
  const named = readFileSync(join(root, "docs/walkthrough.md"), "utf8").matchAll(
    /`((?:schemas|shared|services)\/[\w./-]+\.ts)`/g,
  );
  expect([...named].map(([, file = ""]) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
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
  expect(cycles.map((cycle) => cycle.join(" → "))).toEqual([]);
});

/**
 * Imported by themselves: by threads that keep leases and by the page in the browser, which must not load
 * what else their folder exports, or left out of their folder's door because they load large libraries.
 */
const sideDoors = [
  "shared/errors/unparking.ts",
  "shared/runtime/trace.ts",
  "shared/bus/storage/blobs.ts",
  "shared/leases/renewal-thread.ts",
  "schemas/fits.ts",
  "schemas/inbox-verbs.ts",
  "schemas/tokens.ts",
];

test("no import goes round a folder's door", () => {
  const imports = graph();
  const wrong: string[] = [];
  for (const file of imports.keys()) {
    // The page in the browser may take types from anywhere: they are gone when it runs.
    const targets = file.includes("/dashboard/")
      ? (imports.get(file) ?? [])
      : importsOf(file)
          .filter((name) => name.startsWith("."))
          .map((name) => relative(root, resolve(root, dirname(file), name)));
    for (const target of targets) {
      const door = doorOf(file, target);
      if (!door || doors.some((name) => target === `${door}/${name}`)) continue;
      if (sideDoors.includes(target)) continue;
      // Services of one process: `dev` and the kit for tests run them, the reference of all settings reads them.
      if (
        /^(?:services\/cli|shared\/testing)\//.test(file) &&
        /^services\/(?:gateway|watcher)\//.test(target)
      )
        continue;
      wrong.push(`${file} imports ${target} instead of ${door}/index.ts`);
    }
  }
  expect(wrong).toEqual([]);
});

/** `index.ts` for everyone; where that is what users import, `internal.ts` for the rest of the engine. */
const doors = ["index.ts", "internal.ts"];

/** The innermost folder with a door around the target, unless the file is inside it. */
function doorOf(file: string, target: string): string | undefined {
  for (let folder = dirname(target); folder !== "."; folder = dirname(folder)) {
    if (file.startsWith(`${folder}/`)) return undefined;
    if (existsSync(join(root, folder, "index.ts"))) return folder;
  }
  return undefined;
}

function allSources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}
