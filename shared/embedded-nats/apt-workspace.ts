/**
 * Downloads packages of the machine's own distribution without installing them. Nothing of the system is
 * written: lists, cache and packages are in a temporary folder, and apt checks signatures as always. Needs no
 * root.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { distributionOf, newerSources, type SourceFile } from "./apt-sources.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

export type Suite = "own" | "newer";

type OpenedApt = { kind: "open"; apt: AptWorkspace } | { kind: "failed"; reason: string };

export class AptWorkspace implements AsyncDisposable {
  /** Downloaded packages appear here. */
  readonly folder: string;
  /** The archive's name of the suite. */
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

/**
 * apt reads this after the machine's own configuration (`-c`): proxies stay, and settings that would write
 * elsewhere are cleared.
 */
function aptConfig(folder: string): string {
  return [
    `Dir::Etc::sourcelist "/dev/null";`,
    `Dir::Etc::sourceparts "${join(folder, "sources")}";`,
    `Dir::State::lists "${join(folder, "lists")}";`,
    `Dir::Cache "${join(folder, "cache")}";`,
    // The machine's pins and default release would hide the newer suite.
    `Dir::Etc::preferences "/dev/null";`,
    `Dir::Etc::preferencesparts "/dev/null";`,
    "#clear APT::Default-Release;",
    // The machine's hooks clean its package cache or refresh its catalogues: they must not run here.
    "#clear APT::Update;",
    // Run by root, apt would switch to the user _apt, which cannot write into our folder.
    `APT::Sandbox::User "root";`,
    `Acquire::Languages "none";`,
    `Acquire::Retries "1";`,
    `Acquire::http::Timeout "10";`,
    `Acquire::https::Timeout "10";`,
    "",
  ].join("\n");
}
