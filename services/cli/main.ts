/** The command line: parses, runs one command, returns the exit code. Never throws, never prints a stack. */
import { Command, CommanderError } from "commander";
import type { Environment } from "../config.ts";
import { packageVersion } from "../version.ts";
import type { Cli } from "./client-command.ts";
import { devCommand } from "./dev/index.ts";
import { doctorCommand } from "./doctor.ts";
import { exitCodeOf, exitCodes, exitCodesHelp } from "./exit-codes.ts";
import { healthCommand } from "./health.ts";
import { instanceCommands } from "./instances.ts";
import type { Streams } from "./output.ts";
import { errorLine } from "./report-error.ts";
import { serveCommands } from "./serve.ts";
import { sessionCommands } from "./sessions.ts";
import { workerCommands } from "./workers.ts";

export async function main(
  args: readonly string[],
  env: Environment,
  streams: Streams = process,
): Promise<number> {
  const cli: Cli = { env, stdout: streams.stdout, stderr: streams.stderr, exitCode: exitCodes.ok };
  try {
    await program(cli).parseAsync([...args], { from: "user" });
    return cli.exitCode;
  } catch (error) {
    // Help and version are thrown too; wrong usage was explained already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    streams.stderr.write(`${errorLine(error, args.includes("--json"))}\n`);
    return exitCodeOf(error);
  }
}

function program(cli: Cli): Command {
  const root = new Command("holdfast")
    .description("Durable orchestrations on NATS JetStream whose steps can hold on to a worker")
    .version(packageVersion())
    .addHelpText("after", exitCodesHelp);
  const commands = [
    devCommand(cli),
    ...serveCommands(cli),
    ...instanceCommands(cli),
    sessionCommands(cli),
    workerCommands(cli),
    doctorCommand(cli),
    healthCommand(cli),
  ];
  for (const command of commands) root.addCommand(command);
  for (const command of [root, ...commands, ...commands.flatMap((group) => group.commands)]) {
    command.exitOverride();
    command.configureOutput({
      writeOut: (text) => cli.stdout.write(text),
      writeErr: (text) => cli.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "holdfast: ")),
    });
  }
  return root;
}
