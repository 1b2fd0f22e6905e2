import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const PackageFile = z.object({ name: z.literal("holdfast"), version: z.string() });

/** This package's folder: above us both in the sources and in dist. */
export const packageDir = (): string => findPackage(dirname(fileURLToPath(import.meta.url))).dir;

export const packageVersion = (): string => findPackage(packageDir()).version;

function findPackage(from: string): { dir: string; version: string } {
  const parsed = PackageFile.safeParse(readPackage(from));
  if (parsed.success) return { dir: from, version: parsed.data.version };
  const parent = dirname(from);
  if (parent === from) throw new Error("holdfast's own package.json was not found");
  return findPackage(parent);
}

function readPackage(dir: string): unknown {
  try {
    return JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  } catch {
    return undefined; // not here: looked for further up
  }
}
