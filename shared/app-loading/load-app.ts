/** Loads a user's application module, TypeScript or JavaScript, from anywhere on the disk. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type App, collectApp } from "../definitions/index.ts";
import { Fault, isFault } from "../errors/index.ts";
import { needsHooks } from "./needs-hooks.ts";
import { hooksNeedThread, type OwnModules, registerOwnModules } from "./own-modules.ts";
import { refuseMiscompiled } from "./refuse-miscompiled.ts";
import { registerTypescript } from "./register-typescript.ts";

const entryNames = ["app.ts", "app.mts", "app.js", "app.mjs", "index.ts", "index.js"];

/** `path` is a module, or a folder that holds one called `app` or `index`. */
export async function loadApp(path: string | undefined): Promise<App> {
  if (path === undefined || path === "") {
    throw new Fault("config", {
      code: "app_missing",
      message: "no application given",
      hint: "Name its module with --app <module> or HOLDFAST_APP.",
    });
  }
  const app = collectApp(await importUserModule(path), path);
  if (app.orchestrations.size + app.activities.size + app.sessions.size === 0) {
    throw new Fault("config", {
      code: "app_empty",
      message: `${path} exports no orchestrations, activities or session types`,
      hint: "Export what defineOrchestration, defineActivity and defineSession return, by name or in an array.",
    });
  }
  refuseMiscompiled(app, path);
  return app;
}

/** Imports a user's module so that it shares this copy of the package. */
export async function importUserModule(path: string): Promise<Record<string, unknown>> {
  const file = findEntry(path, resolve(path));
  await prepareLoader(file);
  return importModule(path, file);
}

function findEntry(path: string, full: string): string {
  const fail = (why: string) =>
    new Fault("config", { code: "app_not_found", message: `cannot load the application ${path}: ${why}` });
  if (!existsSync(full)) throw fail("there is no such file");
  if (!statSync(full).isDirectory()) return full;
  const entry = entryNames.map((name) => join(full, name)).find((candidate) => existsSync(candidate));
  if (entry === undefined) throw fail(`the folder has none of ${entryNames.join(", ")}`);
  return entry;
}

async function importModule(path: string, file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (error) {
    if (isFault(error)) throw error;
    throw new Fault("config", {
      code: "app_load_failed",
      message: `cannot load the application ${path}: ${reasonOf(error)}${placeOf(error)}`,
      hint: remedyOf(reasonOf(error)),
      cause: error,
    });
  }
}

/** One line. The compiler puts the place of an error on the second line, Node on the first. */
function reasonOf(error: unknown): string {
  const lines = String(error instanceof Error ? error.message : error)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  return /^Transform failed/.test(lines[0] ?? "")
    ? (lines[1] ?? "it does not compile")
    : (lines[0] ?? "unknown");
}

/** The first place of the error in the application's own code, if the reason does not name it. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  const places = (error.stack ?? "").matchAll(/(?:file:\/\/)?(\/[^\s()?]+\.[cm]?[jt]sx?)[^\s():]*:(\d+)/g);
  for (const [, file = "", line] of places) {
    if (file.includes("/node_modules/") || isHoldfastFile(file)) continue;
    return reasonOf(error).includes(file) ? "" : ` (${file}:${line})`;
  }
  return "";
}

/** A hint for the commonest failure of a fresh clone: a package that is not installed. */
function remedyOf(reason: string): string | undefined {
  const [, name] = /^Cannot find package '([^']+)'/.exec(reason) ?? [];
  return name && `Install it where the application is: npm install ${name}`;
}

/** True for a file of this package, as source or built. Its examples count as applications. */
const isHoldfastFile = (file: string): boolean =>
  /^\/(?:dist|schemas|services|shared)\//.test(
    file.startsWith(packageFolder) ? file.slice(packageFolder.length) : "",
  );

const [, packageFolder = ""] =
  /^(.*)\/(?:dist|shared\/app-loading)\//.exec(fileURLToPath(import.meta.url)) ?? [];

let prepared = { own: false, typescript: false };

async function prepareLoader(file: string): Promise<void> {
  // Import Holdfast before the hooks are registered: the application will import it, and with hooks every import
  // goes through their thread (Node 20).
  if (!prepared.own) await import("../sdk/index.ts");
  const modules = ownModules();
  if (!prepared.own && hooksNeedThread && !needsHooks(file, modules)) return;
  // First the compiler, then our own hook: Node asks the hook registered last first.
  if (/\.[cm]?tsx?$/.test(file) && !prepared.typescript) {
    await registerTypescript();
    prepared = { own: false, typescript: true };
  }
  if (!prepared.own) {
    registerOwnModules(modules);
    prepared = { ...prepared, own: true };
  }
}

/** The application imports the copy of this package that runs it, wherever the application's folder is. */
const ownModules = (): OwnModules => ({
  own: {
    holdfast: ownModule("../sdk/index"),
    "holdfast/client": ownModule("../sdk/client-entry"),
    "holdfast/inference": ownModule("../inference/index"),
    "holdfast/schemas": ownModule("../../schemas/index"),
  },
  home: import.meta.url,
});

function ownModule(path: string): string {
  const extension = fileURLToPath(import.meta.url).endsWith(".ts") ? "ts" : "js";
  return new URL(`./${path}.${extension}`, import.meta.url).href;
}
