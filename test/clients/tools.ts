/** Clients of other languages, fetched from their registries into the cache of this package. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const cache = resolve(import.meta.dirname, "../../node_modules/.cache/holdfast-clients");

export interface Tool {
  name: string;
  version: string;
  /** Runs a program or a command line; returns what it printed. Rejects where it fails. */
  run(code: string): Promise<string>;
}
export type Found = Tool | { name: string; missing: string };

const longestMs = 1_200_000;

/** Whatever keeps a tool from being there is a reason to skip it by name, not a failure. */
async function found(name: string, prepare: () => Promise<Tool>): Promise<Found> {
  try {
    return await prepare();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // Its last words would be those of a command that was well under way.
    const late = error instanceof Error && "killed" in error && error.killed === true;
    if (late) return { name, missing: `not ready within ${longestMs / 60_000} minutes` };
    return { name, missing: text.trim().split("\n").at(-1) ?? "unknown" };
  }
}

const output = async (
  file: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
) => {
  const { stdout, stderr } = await run(file, args, { ...options, timeout: longestMs, maxBuffer: 2 ** 26 });
  return stdout + stderr;
};

export const natsPy = () =>
  found("nats-py", async () => {
    const venv = join(cache, "python");
    const python = join(venv, "bin", "python");
    if (!existsSync(python)) await output("python3", ["-m", "venv", venv]);
    await output(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "nats-py"]);
    const version = await output(python, [
      "-c",
      "import importlib.metadata as m; print(m.version('nats-py'))",
    ]);
    return { name: "nats-py", version: version.trim(), run: (code) => output(python, ["-c", code]) };
  });

export const natsGo = () =>
  found("nats.go", async () => {
    const folder = join(cache, "go");
    mkdirSync(folder, { recursive: true });
    if (!existsSync(join(folder, "go.mod"))) await output("go", ["mod", "init", "example"], { cwd: folder });
    await output("go", ["get", "github.com/nats-io/nats.go@latest"], { cwd: folder });
    const listed = await output("go", ["list", "-m", "github.com/nats-io/nats.go"], { cwd: folder });
    return {
      name: "nats.go",
      version: listed.trim().split(" ").at(-1) ?? "",
      async run(code) {
        writeFileSync(join(folder, "main.go"), code);
        await output("go", ["mod", "tidy"], { cwd: folder });
        return output("go", ["run", "."], { cwd: folder });
      },
    };
  });

/** Built as a dependency and not by `go install …@latest`, which asks the registry for lists that not every mirror has. */
const natsCliVersion = "v0.4.0";

export const natsCli = () =>
  found("nats", async () => {
    const bin = join(cache, "bin");
    const folder = join(cache, `natscli-${natsCliVersion}`);
    if (!existsSync(join(bin, "nats"))) {
      mkdirSync(folder, { recursive: true });
      const needs = `module example\ngo 1.24\nrequire github.com/nats-io/natscli ${natsCliVersion}\n`;
      writeFileSync(join(folder, "go.mod"), needs);
      const env = { ...process.env, GOFLAGS: "-mod=mod" };
      const args = ["build", "-o", join(bin, "nats"), "github.com/nats-io/natscli/nats"];
      await output("go", args, { cwd: folder, env });
    }
    return {
      name: "nats",
      version: natsCliVersion,
      run: (command) =>
        output("sh", ["-c", command], { env: { ...process.env, PATH: `${bin}:${process.env.PATH}` } }),
    };
  });

export const curl = () =>
  found("curl", async () => ({
    name: "curl",
    version: (await output("curl", ["--version"])).split(" ")[1] ?? "",
    run: (commands) => output("sh", ["-ec", commands]),
  }));
