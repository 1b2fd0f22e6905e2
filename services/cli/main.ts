/** The command line: parses, runs one command, returns the exit code. Never throws, never prints a stack. */
import { CommanderError } from "commander";
import { Fault } from "../../shared/errors/index.ts";
import type { Environment } from "../config.ts";
import type { Cli } from "./connection/client-command.ts";
import { program } from "./program.ts";
import { exitCodeOf, exitCodes } from "./terminal/exit-codes.ts";
import type { Streams } from "./terminal/output.ts";
import { errorLine } from "./terminal/report-error.ts";

export async function main(
  args: readonly string[],
  env: Environment,
  streams: Streams = process,
): Promise<number> {
  const { stdout, stderr, stdin } = streams;
  const cli: Cli = { env, stdout, stderr, ...(stdin === undefined ? {} : { stdin }), exitCode: exitCodes.ok };
  const json = args.includes("--json") || args.includes("--jsonl");
  try {
    await program(cli, { explainUsage: !json }).parseAsync([...args], { from: "user" });
    return cli.exitCode;
  } catch (error) {
    // Commander throws for help and version too; it has already explained wrong usage to people.
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.ok;
      if (json) stderr.write(`${errorLine(usageError(error), json)}\n`);
      return exitCodes.usage;
    }
    stderr.write(`${errorLine(error, json)}\n`);
    return exitCodeOf(error);
  }
}

const usageError = ({ message }: CommanderError): Fault =>
  new Fault("config", { code: "usage", message: message.replace(/^error: /, "") });
