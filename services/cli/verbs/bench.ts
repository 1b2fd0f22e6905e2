/** `holdfast bench`: runs the benchmark of a clone of the repository. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { Fault } from "../../../shared/errors/index.ts";
import { packageDir } from "../../version.ts";
import type { Cli } from "../connection/client-command.ts";
import { type ExitCode, exitCodes } from "../terminal/exit-codes.ts";

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

export function findBench(folder: string): string {
  const main = join(folder, "bench", "main.ts");
  if (existsSync(main)) return main;
  throw new Fault("config", {
    code: "bench_missing",
    message: "the benchmark is not part of the installed package",
    hint: "Clone the repository, then `npm ci && npm run bench`.",
  });
}

async function runBench(args: readonly string[]): Promise<ExitCode> {
  const main = findBench(packageDir());
  const { spawn } = await import("node:child_process");
  const child = spawn(process.execPath, ["--import", "tsx", main, ...args], { stdio: "inherit" });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code === 0) return exitCodes.ok;
  return code === null ? exitCodes.interrupted : code === 2 ? exitCodes.usage : exitCodes.failed;
}
