/**
 * The version of holdfast for the new application's package.json, so that `npm install` there gets the
 * package that wrote it: a version number if that came from a registry, else the folder, the file or the
 * address it was installed from.
 */
import { readFileSync, realpathSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { packageDir, packageVersion } from "../../version.ts";

export function dependencyAsInstalled(installed = { dir: packageDir(), version: packageVersion() }): string {
  const dir = realpathSync(installed.dir);
  const modules = `${sep}node_modules${sep}`;
  // A clone of the repository, or a folder that was linked.
  if (!dir.includes(modules)) return `file:${dir}`;
  const project = dir.slice(0, dir.lastIndexOf(modules));
  const from = resolvedBy(join(project, "node_modules", ".package-lock.json"));
  if (from?.startsWith("file:")) return `file:${resolve(project, from.slice("file:".length))}`;
  if (from !== undefined && /^git[+:]/.test(from)) return from;
  return `^${installed.version}`;
}

/** npm writes down where it got each package; other installers do not. */
function resolvedBy(lock: string): string | undefined {
  try {
    const from = JSON.parse(readFileSync(lock, "utf8")).packages?.["node_modules/holdfast"]?.resolved;
    return typeof from === "string" ? from : undefined;
  } catch {
    return undefined;
  }
}
