/** `holdfast bench`: the benchmark of a clone of the repository. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { Fault } from "../../../shared/errors/index.ts";
import type { Cli } from "../client-command.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";

export const benchCommand = (cli: Cli): Command =>
  new Command("bench")
    .description("measure this machine; only in a clone of the repository")
    .argument("[options...]", "options of the benchmark; `holdfast bench --help` shows them")
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (args: string[]) => {
      cli.exitCode = await runBench(args);
    });

async function runBench(args: readonly string[]): Promise<ExitCode> {
  const { packageDir } = await import("../../version.ts");
  const main = join(packageDir(), "bench", "main.ts");
  if (!existsSync(main)) {
    throw new Fault("config", {
      code: "bench_missing",
      message: "the benchmark is not part of the installed package",
      hint: "Clone the repository, then `npm ci && npm run bench`.",
    });
  }
  const { spawn } = await import("node:child_process");
  const child = spawn(process.execPath, ["--import", "tsx", main, ...args], { stdio: "inherit" });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code === 0) return exitCodes.ok;
  return code === null ? exitCodes.interrupted : code === 2 ? exitCodes.usage : exitCodes.failed;
}
