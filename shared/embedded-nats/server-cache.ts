/**
 * Fetched servers live in `<cacheDir>/<version>/nats-server`. A file appears there only by rename, whole and
 * executable, so that any number of processes may fetch at once: the last one wins with the same content.
 */
import { randomUUID } from "node:crypto";
import { chmod, copyFile, mkdir, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { binaryName, probeBinary } from "./probe-binary.ts";
import type { FoundServer, Way } from "./server-origin.ts";
import { compareServerVersions, formatServerVersion, parseServerVersion } from "./server-version.ts";

export const defaultCacheDir = (): string => join(homedir(), ".cache", "holdfast", "nats-server");

/** The newest usable server in the cache. */
export async function findInCache(cacheDir: string): Promise<Way> {
  const reasons: string[] = [];
  for (const version of await cachedVersions(cacheDir)) {
    const path = join(cacheDir, version, binaryName);
    const probe = await probeBinary(path);
    if (probe.kind === "usable") {
      return { kind: "found", server: { path, version: probe.version, origin: "cache" } };
    }
    reasons.push(probe.reason);
  }
  return { kind: "failed", reasons: reasons.length > 0 ? reasons : [`nothing in ${cacheDir}`] };
}

async function cachedVersions(cacheDir: string): Promise<string[]> {
  const names = await readdir(cacheDir).catch((): string[] => []);
  return names
    .flatMap((name) => {
      const version = parseServerVersion(name);
      return version ? [{ name, version }] : [];
    })
    .sort((a, b) => compareServerVersions(b.version, a.version))
    .map(({ name }) => name);
}

/** Copies a fetched binary next to its place and renames it in. Fails when the binary does not run here. */
export async function placeInCache(
  cacheDir: string,
  fetched: string,
  origin: FoundServer["origin"],
): Promise<Way> {
  await mkdir(cacheDir, { recursive: true });
  // Copied, not moved: the temporary folder may be on another file system, and rename is atomic only within one.
  const staged = join(cacheDir, `.${binaryName}-${randomUUID()}`);
  try {
    await copyFile(fetched, staged);
    await chmod(staged, 0o755);
    const probe = await probeBinary(staged);
    if (probe.kind === "unusable") return { kind: "failed", reasons: [probe.reason] };
    const folder = join(cacheDir, formatServerVersion(probe.version));
    await mkdir(folder, { recursive: true });
    const path = join(folder, binaryName);
    await rename(staged, path);
    return { kind: "found", server: { path, version: probe.version, origin } };
  } finally {
    await rm(staged, { force: true });
  }
}
