/**
 * nats-server out of a newer suite of the machine's own distribution. Nothing is installed and nothing of the system
 * is written: lists, cache and package live in a temporary folder, and apt checks signatures as always. Needs no root.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { distributionOf, newerSources, type SourceFile } from "./apt-sources.ts";
import { runCommand } from "./run-command.ts";
import { placeInCache } from "./server-cache.ts";
import type { OnProgress, Way } from "./ways.ts";

const failed = (...reasons: string[]): Way => ({ kind: "failed", reasons });

export interface PackageOptions {
  cacheDir: string;
  onProgress: OnProgress;
}

export async function fetchPackage({ cacheDir, onProgress }: PackageOptions): Promise<Way> {
  const osRelease = await readFile("/etc/os-release", "utf8").catch(() => "");
  const distribution = distributionOf(osRelease);
  if (!distribution) return failed("this is not Debian or a relative of it");
  const sources = newerSources(await machineSources(), distribution);
  if (sources.length === 0)
    return failed("no source of the base system among the apt sources of this machine");

  onProgress(`fetching nats-server from the package manager (suite ${distribution.newerSuite})`);
  const work = await mkdtemp(join(tmpdir(), "holdfast-nats-package-"));
  try {
    await prepare(work, sources);
    // With several sources one may lack the suite while another has it, so the download is what decides.
    const update = await apt(work, ["update"]);
    const download = await apt(work, ["download", "nats-server"]);
    if (download.kind === "failed") {
      return failed(...(update.kind === "failed" ? [update.reason] : []), download.reason);
    }
    const name = (await readdir(work)).find((file) => file.endsWith(".deb"));
    if (name === undefined) return failed("apt-get download left no package");
    const unpack = await runCommand("dpkg", ["-x", name, "unpacked"], { cwd: work, timeoutMs: 60_000 });
    if (unpack.kind === "failed") return failed(unpack.reason);
    const binary = await findBinary(join(work, "unpacked", "usr"));
    if (binary === undefined) return failed(`${name} holds no nats-server`);
    return await placeInCache(cacheDir, binary, "package");
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function machineSources(): Promise<SourceFile[]> {
  const folder = "/etc/apt/sources.list.d";
  const names = await readdir(folder).catch((): string[] => []);
  const paths = ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))];
  return Promise.all(
    paths.map(async (name) => ({ name, text: await readFile(name, "utf8").catch(() => "") })),
  );
}

async function prepare(work: string, sources: readonly SourceFile[]): Promise<void> {
  for (const folder of ["sources", "lists/partial", "cache/archives/partial"]) {
    await mkdir(join(work, folder), { recursive: true });
  }
  for (const { name, text } of sources) await writeFile(join(work, "sources", name), text);
  await writeFile(join(work, "apt.conf"), aptConfig(work));
}

/** Read after the machine's own configuration (`-c`), so proxies stay and what would reach outside is cleared. */
function aptConfig(work: string): string {
  return [
    `Dir::Etc::sourcelist "/dev/null";`,
    `Dir::Etc::sourceparts "${join(work, "sources")}";`,
    `Dir::State::lists "${join(work, "lists")}";`,
    `Dir::Cache "${join(work, "cache")}";`,
    // Pins and a default release of the machine would hide the newer suite.
    `Dir::Etc::preferences "/dev/null";`,
    `Dir::Etc::preferencesparts "/dev/null";`,
    "#clear APT::Default-Release;",
    // Hooks of the machine clean its package cache or refresh its catalogues: not ours to set off.
    "#clear APT::Update;",
    // As root apt would drop to _apt, which cannot write into our folder.
    `APT::Sandbox::User "root";`,
    `Acquire::Languages "none";`,
    `Acquire::Retries "1";`,
    `Acquire::http::Timeout "10";`,
    `Acquire::https::Timeout "10";`,
    "",
  ].join("\n");
}

const apt = (work: string, args: readonly string[]) =>
  runCommand("apt-get", ["-q", "-c", join(work, "apt.conf"), ...args], { cwd: work, timeoutMs: 180_000 });

async function findBinary(usr: string): Promise<string | undefined> {
  for (const folder of ["sbin", "bin"]) {
    const names = await readdir(join(usr, folder)).catch((): string[] => []);
    if (names.includes("nats-server")) return join(usr, folder, "nats-server");
  }
  return undefined;
}
