import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** This package's folder: above this file both in the sources and in dist. */
export const packageDir = (): string => findPackage(dirname(fileURLToPath(import.meta.url))).dir;

export const packageVersion = (): string => findPackage(packageDir()).version;

function findPackage(from: string): { dir: string; version: string } {
  const version = versionIn(readPackage(from));
  if (version !== undefined) return { dir: from, version };
  const parent = dirname(from);
  if (parent === from) throw new Error("holdfast's own package.json was not found");
  return findPackage(parent);
}

/** Checked by hand: the command line should not load a schema library to print its version. */
function versionIn(file: unknown): string | undefined {
  if (typeof file !== "object" || file === null || !("name" in file) || !("version" in file))
    return undefined;
  return file.name === "holdfast" && typeof file.version === "string" ? file.version : undefined;
}

function readPackage(dir: string): unknown {
  try {
    return JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  } catch {
    return undefined; // not here: the caller looks further up
  }
}
