/**
 * Packages of the machine's own distribution, downloaded and not installed. Nothing of the system is written: lists, cache
 * and packages live in a temporary folder, and apt checks signatures as always. Needs no root.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { distributionOf, newerSources, type SourceFile } from "./apt-sources.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

export type Suite = "own" | "newer";

export type OpenedApt = { kind: "open"; apt: AptWorkspace } | { kind: "failed"; reason: string };

export class AptWorkspace implements AsyncDisposable {
  /** Downloaded packages appear here. */
  readonly folder: string;
  /** As the archive calls it. */
  readonly suite: string;

  constructor(folder: string, suite: string) {
    this.folder = folder;
    this.suite = suite;
  }

  update(): Promise<CommandResult> {
    return this.#run(["update"]);
  }

  download(...packages: readonly string[]): Promise<CommandResult> {
    return this.#run(["download", ...packages]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #run(args: readonly string[]): Promise<CommandResult> {
    const options = { cwd: this.folder, timeoutMs: 300_000 };
    return runCommand("apt-get", ["-q", "-c", join(this.folder, "apt.conf"), ...args], options);
  }
}

/** A workspace on the base archive, of the suite this machine runs or of the newest one there is. */
export async function openApt(suite: Suite): Promise<OpenedApt> {
  const osRelease = await readFile("/etc/os-release", "utf8").catch(() => "");
  const distribution = distributionOf(osRelease);
  if (!distribution) return { kind: "failed", reason: "this is not Debian or a relative of it" };
  const wanted = suite === "newer" ? distribution.newerSuite : distribution.codename;
  if (wanted === undefined)
    return { kind: "failed", reason: "this machine does not say which suite it runs" };
  const sources = newerSources(await machineSources(), { ...distribution, newerSuite: wanted });
  if (sources.length === 0) {
    return {
      kind: "failed",
      reason: "no source of the base system among the apt sources of this machine",
    };
  }
  const folder = await mkdtemp(join(tmpdir(), "holdfast-apt-"));
  await prepare(folder, sources);
  return { kind: "open", apt: new AptWorkspace(folder, wanted) };
}

async function machineSources(): Promise<SourceFile[]> {
  const folder = "/etc/apt/sources.list.d";
  const names = await readdir(folder).catch((): string[] => []);
  const paths = ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))];
  return Promise.all(
    paths.map(async (name) => ({ name, text: await readFile(name, "utf8").catch(() => "") })),
  );
}

async function prepare(folder: string, sources: readonly SourceFile[]): Promise<void> {
  for (const name of ["sources", "lists/partial", "cache/archives/partial"]) {
    await mkdir(join(folder, name), { recursive: true });
  }
  for (const { name, text } of sources) await writeFile(join(folder, "sources", name), text);
  await writeFile(join(folder, "apt.conf"), aptConfig(folder));
}

/** Read after the machine's own configuration (`-c`), so proxies stay and what would reach outside is cleared. */
function aptConfig(folder: string): string {
  return [
    `Dir::Etc::sourcelist "/dev/null";`,
    `Dir::Etc::sourceparts "${join(folder, "sources")}";`,
    `Dir::State::lists "${join(folder, "lists")}";`,
    `Dir::Cache "${join(folder, "cache")}";`,
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
