/**
 * Fetches nats-server from a newer suite of the machine's own distribution, unpacked and not installed
 * (apt-workspace.ts).
 */

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors/index.ts";
import { type AptWorkspace, openApt } from "./apt-workspace.ts";
import { runCommand } from "./run-command.ts";
import { placeInCache } from "./server-cache.ts";
import type { OnProgress, Way } from "./server-origin.ts";

const failed = (...reasons: string[]): Way => ({ kind: "failed", reasons });

interface PackageOptions {
  cacheDir: string;
  onProgress: OnProgress;
}

export async function fetchPackage({ cacheDir, onProgress }: PackageOptions): Promise<Way> {
  const opened = await openApt("newer");
  if (opened.kind === "failed") return failed(opened.reason);
  await using apt = opened.apt;
  onProgress(`fetching nats-server from the package manager (suite ${apt.suite})`);
  try {
    return await fetchFrom(apt, cacheDir);
  } catch (error) {
    return failed(messageOf(error));
  }
}

async function fetchFrom(apt: AptWorkspace, cacheDir: string): Promise<Way> {
  // With several sources one may lack the suite while another has it, so the download decides, not the
  // update.
  const update = await apt.update();
  const download = await apt.download("nats-server");
  if (download.kind === "failed") {
    return failed(...(update.kind === "failed" ? [update.reason] : []), download.reason);
  }
  const name = (await readdir(apt.folder)).find((file) => file.endsWith(".deb"));
  if (name === undefined) return failed("apt-get download left no package");
  const unpack = await runCommand("dpkg", ["-x", name, "unpacked"], { cwd: apt.folder, timeoutMs: 60_000 });
  if (unpack.kind === "failed") return failed(unpack.reason);
  const binary = await findBinary(join(apt.folder, "unpacked", "usr"));
  if (binary === undefined) return failed(`${name} holds no nats-server`);
  return placeInCache(cacheDir, binary, "package");
}

async function findBinary(usr: string): Promise<string | undefined> {
  for (const folder of ["sbin", "bin"]) {
    const names = await readdir(join(usr, folder)).catch((): string[] => []);
    if (names.includes("nats-server")) return join(usr, folder, "nats-server");
  }
  return undefined;
}
